"""No request stays in memory after its response: neither in a cache, nor in a reference cycle that waits for the
garbage collector.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

from support.server import Server, running

REQUESTS = 300
REQUEST = "tetrapod.generic.http.request.Request"
PATHS = (
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/configmaps/missing",
    "/apis/none.example.com/v1/things",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("memory")) as server:
        yield server


def live_objects(connection: http.client.HTTPSConnection, kind: str) -> int:
    """Return how many objects of a type are alive after a garbage collection."""
    connection.request("GET", "/debug/pprof/heap?debug=2")
    lines = connection.getresponse().read().decode().splitlines()[1:]
    return sum(int(line.split()[0]) for line in lines if line.split()[2] == kind)


@pytest.mark.parametrize("path", PATHS)
def test_requests_with_a_client_certificate_are_not_kept(server: Server, path: str) -> None:
    connection = server.connect()
    try:
        before = live_objects(connection, REQUEST)
        for _ in range(REQUESTS):
            connection.request("GET", path)
            connection.getresponse().read()
        # controllers of the server send requests, too
        assert live_objects(connection, REQUEST) - before < REQUESTS / 10
    finally:
        connection.close()
