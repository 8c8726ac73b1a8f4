"""The custom resource definitions that every test of this project needs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from backups import Operator

from tetrapod.testing import Server


@pytest.fixture(scope="session")
def tetrapod_manifests() -> Path:
    return Path(__file__).parents[1] / "operator-go" / "crds"


@pytest.fixture
def operator(tetrapod: Server) -> Iterator[Operator]:
    """Run the operator. It is stopped before the server is reset for the next test."""
    operator = Operator(tetrapod.kubernetes_client())
    thread = threading.Thread(target=operator.run)
    thread.start()
    yield operator
    operator.stop()
    thread.join()
