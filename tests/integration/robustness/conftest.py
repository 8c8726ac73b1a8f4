"""The servers for all tests of bad input: one process, and four services. Their logs are searched for tracebacks after
each test.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.attacked import Attacked, four_services, one_process
from support.service_accounts import wait_for_service_account
from support.wire import Client


@pytest.fixture(scope="session", params=["one process", pytest.param("four services", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    form = one_process if request.param == "one process" else four_services
    with form(tmp_path_factory.mktemp("robustness")) as server:
        with Client(server) as client:
            wait_for_service_account(client)
        yield server


@pytest.fixture(scope="session", params=[False, True], ids=["HTTP/1.1", "HTTP/2"])
def http2(request: pytest.FixtureRequest) -> bool:
    """Run a test over both versions of HTTP."""
    return bool(request.param)


@pytest.fixture(scope="session")
def client(server: Attacked, http2: bool) -> Iterator[Client]:
    with Client(server, http2=http2) as client:
        yield client


@pytest.fixture(autouse=True)
def no_traceback(server: Attacked) -> Iterator[None]:
    """Check that no request has caused an error in the server."""
    before = [log.stat().st_size for _, log in server.processes]
    yield
    for (process, log), size in zip(server.processes, before, strict=True):
        assert process.poll() is None, log.read_text()[-4000:]
        logged = log.read_bytes()[size:].decode()
        assert "Traceback" not in logged, logged[-6000:]
