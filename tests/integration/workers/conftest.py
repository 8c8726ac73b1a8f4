"""A server with two workers, which the tests of this folder share unless they stop a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.workers.worker_server import WorkerServer, worker_server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerServer]:
    flags = ("--advertise-address=198.51.100.1",)
    with worker_server(tmp_path_factory.mktemp("workers"), flags) as server:
        yield server
