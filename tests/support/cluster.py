"""The command behind `make cluster`, `make cluster-load` and `make cluster-down`."""

from __future__ import annotations

import os
import subprocess
import sys

from support.server import SERVICES

_TESTS = str(SERVICES.parent / "tests")


def cluster_command(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command, and return the result, also if it failed."""
    environment = {**os.environ, "PYTHONPATH": f"{SERVICES}:{_TESTS}"}
    argv = [sys.executable, "-m", "cluster", name, *arguments]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=600, check=False)
