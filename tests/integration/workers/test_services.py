"""A service with several workers is one replica for the aggregator and the other services."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.workers.worker_server import COUNT, TOKENS, WATCH, children_of
from support.services import Services, running_services
from support.waiting import until
from support.wire import Client, raw_connection, read_to_end

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    flags = {"auth": (f"--token-auth-file={TOKENS}",), "core": (f"--workers={COUNT}",)}
    with running_services(tmp_path_factory.mktemp("services"), **flags) as services:
        until(services.log("core").read_text, lambda text: "tetrapod core is ready" in text)
        yield services


def workers(services: Services) -> list[int]:
    return children_of(services.processes["core"].pid)


def test_requests_succeed_while_a_worker_of_core_is_terminated_and_replaced(services: Services) -> None:
    statuses: list[object] = []
    stopped = threading.Event()

    def request() -> None:
        number = 0
        with Client(services) as client:
            while not stopped.is_set():
                number += 1
                name = f"{threading.get_ident()}-{number}"
                statuses.append(client("POST", CONFIG_MAPS, {"metadata": {"name": name}}).status)
                statuses.append(client("GET", f"{CONFIG_MAPS}/{name}").status)

    threads = [threading.Thread(target=request) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(statuses), lambda count: count > 20)
        for terminated in workers(services):
            os.kill(terminated, signal.SIGTERM)
            until(lambda: workers(services), lambda pids: len(pids) == COUNT and terminated not in pids)  # noqa: B023
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200, 201}


def test_core_ends_its_watches_and_exits_when_it_is_terminated(services: Services) -> None:
    pids = workers(services)
    with raw_connection(services) as connection:
        connection.sendall(WATCH)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        assert services.stop("core") == 0
        assert read_to_end(connection)[-5:] == b"0\r\n\r\n"
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
