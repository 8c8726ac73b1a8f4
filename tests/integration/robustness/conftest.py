"""One real server for all tests of bad input. Its log is searched for tracebacks after each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import Server, running
from support.wire import Client

TOKENS = Path(__file__).parents[2] / "contract" / "tokens.csv"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(
        tmp_path_factory.mktemp("robustness"), f"--token-auth-file={TOKENS}", "--authorization-mode=RBAC"
    ) as server:
        yield server


@pytest.fixture(scope="session", params=[False, True], ids=["HTTP/1.1", "HTTP/2"])
def http2(request: pytest.FixtureRequest) -> bool:
    """Run a test over both versions of HTTP."""
    return bool(request.param)


@pytest.fixture(scope="session")
def client(server: Server, http2: bool) -> Iterator[Client]:
    with Client(server, http2=http2) as client:
        yield client


@pytest.fixture(autouse=True)
def no_traceback(server: Server) -> Iterator[None]:
    """Check that no request has caused an error in the server."""
    before = server.log.stat().st_size
    yield
    assert server.process.poll() is None, server.log.read_text()[-4000:]
    logged = server.log.read_bytes()[before:].decode()
    assert "Traceback" not in logged, logged[-6000:]
