"""The server with the definition of Foo, and each controller as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from foo import FOO

from tetrapod.testing import Server

HERE = Path(__file__).parent
COMMANDS = {
    "plain client": ["controller.py"],
    "kopf": ["-m", "kopf", "run", "--all-namespaces", "controller_kopf.py"],
}


@pytest.fixture(scope="session")
def tetrapod_manifests() -> dict[str, Any]:
    return FOO.definition()


@pytest.fixture(params=list(COMMANDS))
def controller(request: pytest.FixtureRequest, tetrapod: Server) -> Iterator[str]:
    """Run a controller. It is stopped before the server is reset for the next test."""
    environment = {**os.environ, "KUBECONFIG": str(tetrapod.kubeconfig)}
    process = subprocess.Popen([sys.executable, *COMMANDS[request.param]], cwd=HERE, env=environment)
    yield request.param
    process.kill()
    process.wait()
