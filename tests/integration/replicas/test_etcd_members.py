"""Three etcd members of which one at a time fails: reads and writes continue at the others, and watches miss no
event.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.etcd import Etcd, EtcdCluster, etcd_36
from support.load import Balancer
from support.server import Server, running
from support.wire import Client

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TOKENS = Path(__file__).parents[2] / "contract" / "tokens.csv"


class Watcher(threading.Thread):
    """A watch that starts now. `names` are in the order of its events."""

    def __init__(self, server: Server, version: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.ended = ""
        self._url, self._balancer = server.url, Balancer([server.url], server.ca, "admin-token")
        self._version = version

    def run(self) -> None:
        path = f"{CONFIG_MAPS}?watch=true&timeoutSeconds=100&resourceVersion={self._version}"
        connection = self._balancer.connect(self._url, 120)
        connection.request("GET", path, headers={"Authorization": "Bearer admin-token"})
        response = connection.getresponse()
        try:
            self._read(response)
        finally:
            connection.close()

    def _read(self, response: http.client.HTTPResponse) -> None:
        while line := response.readline():
            event = json.loads(line)
            if event["type"] != "ADDED":
                self.ended = f"{event}"
                return
            name = event["object"]["metadata"]["name"]
            if name.startswith("kube-root-ca"):
                continue
            self.names.append(name)
            if name == "last":
                return
        self.ended = "it ended"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(etcd_36(), tmp_path / "etcd")
    cluster.start()
    yield cluster
    cluster.stop()


def write(client: Client, name: str) -> None:
    """Write as soon as the members have elected a leader. Until then a write fails, or its outcome is unknown."""
    deadline = time.monotonic() + 60
    while True:
        answer = client("POST", CONFIG_MAPS, {"metadata": {"name": name}})
        if answer.status in (201, 409):
            return
        assert answer.status in (500, 503, 504), answer.body
        assert time.monotonic() < deadline, answer.body


def test_any_member_may_die(cluster: EtcdCluster, tmp_path: Path) -> None:
    with (
        running(tmp_path / "server", "--etcd-servers", cluster.url, f"--token-auth-file={TOKENS}") as server,
        Client(server) as client,
    ):
        version = client("GET", CONFIG_MAPS).json["metadata"]["resourceVersion"]
        watcher = Watcher(server, version)
        watcher.start()
        made: list[str] = []

        def lives_on_without(member: Etcd) -> None:
            member.stop()
            for number in range(5):
                name = f"without-{member.name}-{number}-{len(made)}"
                write(client, name)
                made.append(name)
                assert client("GET", f"{CONFIG_MAPS}/{name}").status == 200
            member.start()

        lives_on_without(cluster.members[0])  # the member that is used first
        lives_on_without(cluster.leader())
        lives_on_without(cluster.members[2])
        write(client, "last")
        watcher.join(60)
        assert not watcher.ended
        assert watcher.names == [*made, "last"]
