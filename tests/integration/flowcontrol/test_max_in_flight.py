"""--max-requests-inflight and --max-mutating-requests-inflight, without API priority and fairness, as upstream."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing

import pytest

from support.https_client import HttpsClient
from support.server import Server, running
from support.waiting import until

MAPS = "/api/v1/namespaces/default/configmaps"
BODY = b'{"metadata": {"name": "a"}'
BOB = {"impersonate-user": "bob"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = (
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=1",
        "--max-mutating-requests-inflight=1",
    )
    with running(tmp_path_factory.mktemp("data"), *flags) as server:
        binding = {
            "metadata": {"name": "bob"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
        }
        admin, path = HttpsClient(server.kubeconfig), "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        assert admin.call("POST", path, binding).status == 201
        bob = HttpsClient(server.kubeconfig, headers=BOB)
        bob.until(lambda reply: reply.status == 200, "GET", MAPS)
        yield server


def begin(server: Server, method: str, path: str, length: int = 0) -> http.client.HTTPSConnection:
    connection = server.connect()
    connection.putrequest(method, path)
    for name, value in {**BOB, "content-type": "application/json", "content-length": str(length)}.items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection


def test_a_second_write_is_rejected_while_the_first_is_in_flight(server: Server) -> None:
    bob = HttpsClient(server.kubeconfig, headers=BOB)
    admin = HttpsClient(server.kubeconfig)
    with closing(begin(server, "POST", MAPS, len(BODY) + 1)) as creating:
        creating.send(BODY)
        with closing(server.connect()) as connection:

            def rejected() -> tuple[int, str | None, bytes]:
                connection.request("DELETE", f"{MAPS}/nosuch", headers=BOB)
                reply = connection.getresponse()
                return reply.status, reply.getheader("retry-after"), reply.read()

            text = b"Too many requests, please try again later.\n"
            assert until(rejected, lambda reply: reply[0] != 404) == (429, "1", text)
        assert bob.call("GET", MAPS).status == 200  # reads have a limit of their own
        assert admin.call("DELETE", f"{MAPS}/nosuch").status == 404  # system:masters are exempt
        creating.send(b"}")
        assert creating.getresponse().status == 201
    assert bob.call("DELETE", f"{MAPS}/a").status == 200


def test_a_second_read_is_rejected_while_the_first_is_in_flight(server: Server) -> None:
    bob = HttpsClient(server.kubeconfig, headers=BOB)

    def rejected_beside_another() -> bool:
        # A list at a version of the future waits for it for three seconds.
        with closing(begin(server, "GET", f"{MAPS}?resourceVersion=99999999")) as waiting:
            replies = [bob.call("GET", MAPS).status for _ in range(20)]
            return waiting.getresponse().status == 504 and 429 in replies

    until(rejected_beside_another)
    assert bob.call("GET", MAPS).status == 200


def test_watches_are_not_counted(server: Server) -> None:
    bob = HttpsClient(server.kubeconfig, headers=BOB)
    with closing(begin(server, "GET", f"{MAPS}?watch=1")) as watching:
        assert watching.getresponse().status == 200
        assert bob.call("GET", MAPS).status == 200
