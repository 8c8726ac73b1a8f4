"""A full store: deletions go on, nothing is lost, and all writes return with the space.

The disk of SQLite is a small file system in memory, so that the errors are the kernel's. etcd has a small quota.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from support.disks import STRACE, fill, mounts_allowed, quota_exceeded, small_disk
from support.etcd import Etcd, etcd_36
from support.server import Server, running
from support.service_accounts import wait_for_service_account
from support.waiting import until
from support.wire import Answer, Client

TOKENS: Final = f"--token-auth-file={Path(__file__).parents[1] / 'contract' / 'tokens.csv'}"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
FULL: Final = (
    "the store has no space left, because the disk of the server is full: only deletions are possible until space is "
    "free"
)
MEGABYTES: Final = 64

QUOTA: Final = 16 << 20

pytestmark = pytest.mark.long


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    if not mounts_allowed():
        pytest.skip("file systems cannot be mounted here")
    with small_disk(tmp_path / "data", MEGABYTES) as disk:
        yield disk


@pytest.fixture
def server(disk: Path) -> Iterator[Server]:
    with running(disk, TOKENS) as server:
        yield server
        assert "Traceback" not in server.log.read_text(errors="replace")


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server) as client:
        yield client


def create(client: Client, name: str, size: int = 10, **metadata: Any) -> Answer:
    return client("POST", MAPS, {"metadata": {"name": name, **metadata}, "data": {"v": "x" * size}})


def names(client: Client) -> set[str]:
    answer = client("GET", MAPS)
    assert answer.status == 200, answer.body
    return {item["metadata"]["name"] for item in answer.json["items"]}


def assert_full(answer: Answer, message: str = FULL) -> None:
    assert answer.status == 500, answer.body
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": 500,
    }


def create_until_full(client: Client, prefix: str = "f", size: int = 200_000, message: str = FULL) -> set[str]:
    """Create ConfigMaps until the store is full. Return the names of those that were acknowledged."""
    created: set[str] = set()
    for number in itertools.count():
        answer = create(client, f"{prefix}{number}", size)
        if answer.status != 201:
            assert_full(answer, message)
            return created
        created.add(f"{prefix}{number}")
    raise AssertionError("unreachable")


def test_every_object_can_be_deleted_after_the_objects_filled_the_disk(client: Client) -> None:
    kept = {"kube-root-ca.crt"}
    until(lambda: names(client), kept.issubset)
    created = create_until_full(client)
    assert len(created) > 50
    assert_full(client("PUT", f"{MAPS}/f0", {"metadata": {"name": "f0"}, "data": {"v": "y"}}))
    assert names(client) == created | kept

    for name in created:
        assert client("DELETE", f"{MAPS}/{name}").status == 200
    assert names(client) == kept
    again = {f"g{number}" for number in range(50)}
    for name in again:  # the compaction may be slower than these writes
        until(partial(create, client, name, 200_000), lambda answer: answer.status == 201)
    assert names(client) == kept | again


def test_deletions_go_on_after_another_program_filled_the_disk(client: Client, disk: Path) -> None:
    maps = {f"m{number}" for number in range(600)}
    for name in maps:
        assert create(client, name).status == 201
    filler = fill(disk)
    create_until_full(client)

    for name in maps:
        assert client("DELETE", f"{MAPS}/{name}").status == 200
    assert not names(client) & maps

    filler.unlink()
    until(lambda: create(client, "later").status, lambda status: status == 201)
    assert "later" in names(client)


def test_finalizers_grace_periods_and_namespaces_do_not_stop_deletions_on_a_full_disk(
    client: Client, disk: Path
) -> None:
    assert client("POST", "/api/v1/namespaces", {"metadata": {"name": "full"}}).status == 201
    maps = "/api/v1/namespaces/full/configmaps"
    for number in range(20):
        assert client("POST", maps, {"metadata": {"name": f"m{number}"}}).status == 201
    assert create(client, "finalized", finalizers=["example.com/held"]).status == 201
    wait_for_service_account(client)
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    assert client("POST", "/api/v1/namespaces/default/pods", pod).status == 201
    fill(disk)
    create_until_full(client)

    assert client("DELETE", f"{MAPS}/finalized").status == 200
    held = client("GET", f"{MAPS}/finalized").json
    assert held["metadata"]["deletionTimestamp"]
    held["metadata"]["finalizers"] = []
    assert client("PUT", f"{MAPS}/finalized", held).status == 200
    assert client("GET", f"{MAPS}/finalized").status == 404

    assert client("DELETE", "/api/v1/namespaces/default/pods/p").status == 200
    assert client("GET", "/api/v1/namespaces/default/pods/p").json["metadata"]["deletionGracePeriodSeconds"] == 30
    assert client("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0").status == 200
    assert client("GET", "/api/v1/namespaces/default/pods/p").status == 404

    assert client("DELETE", "/api/v1/namespaces/full").status == 200
    until(lambda: client("GET", "/api/v1/namespaces/full").status, lambda status: status == 404)


def test_a_collection_is_deleted_on_a_full_disk(client: Client, disk: Path) -> None:
    for number in range(300):
        assert create(client, f"m{number}", labels={"many": "yes"}).status == 201
    fill(disk)
    create_until_full(client)
    assert client("DELETE", f"{MAPS}?labelSelector=many").status == 200
    assert client("GET", f"{MAPS}?labelSelector=many").json["items"] == []


def test_a_server_starts_on_a_full_disk_and_has_every_acknowledged_object(disk: Path) -> None:
    with running(disk, TOKENS) as server, Client(server) as client:
        created = create_until_full(client)
        fill(disk)
    fill(disk)
    with running(disk, TOKENS) as server, Client(server) as client:
        assert created <= names(client)
        assert_full(create(client, "other", 300_000))
        for name in created:
            assert client("DELETE", f"{MAPS}/{name}").status == 200
        until(lambda: create(client, "again").status, lambda status: status == 201)
        assert "Traceback" not in server.log.read_text(errors="replace")


def test_an_exceeded_disk_quota_is_a_full_disk(tmp_path: Path) -> None:
    if STRACE is None:
        pytest.skip("strace is not installed (tools/prepare.sh)")
    database = tmp_path / "data" / "tetrapod.db"
    files = (database, Path(f"{database}-wal"), Path(f"{database}.reserve"))
    with running(database.parent, TOKENS) as server, Client(server) as client:
        assert create(client, "before").status == 201
        with quota_exceeded(server.process.pid, *files):
            assert_full(create(client, "rejected"))
            assert_full(client("DELETE", f"{MAPS}/before"))  # the reserve is freed, but that is in vain
        until(lambda: create(client, "later").status, lambda status: status == 201)
        assert client("DELETE", f"{MAPS}/before").status == 200
        assert {"before", "rejected", "later"} & names(client) == {"later"}
        assert "Traceback" not in server.log.read_text(errors="replace")


def test_a_full_etcd_is_reported_in_its_words_and_takes_deletions(tmp_path: Path) -> None:
    """As upstream: the writes return after an operator has compacted the store and disarmed the alarm."""
    etcd = Etcd(etcd_36(), tmp_path / "etcd", (f"--quota-backend-bytes={QUOTA}",))
    etcd.start()
    try:
        with running(tmp_path / "data", TOKENS, f"--etcd-servers={etcd.url}") as server, Client(server) as client:
            message = "etcdserver: mvcc: database space exceeded"
            created = create_until_full(client, size=1_000_000, message=message)
            assert_full(client("PUT", f"{MAPS}/f0", {"metadata": {"name": "f0"}, "data": {"v": "y"}}), message)
            for name in created:
                assert client("DELETE", f"{MAPS}/{name}").status == 200
            assert not names(client) & created

            revision = client("GET", MAPS).json["metadata"]["resourceVersion"]
            etcd.call("/v3/kv/compaction", {"revision": revision, "physical": True}, timeout=30)
            etcd.call("/v3/maintenance/defragment", {}, timeout=30)
            for alarm in etcd.call("/v3/maintenance/alarm", {"action": "GET"})["alarms"]:
                etcd.call("/v3/maintenance/alarm", {**alarm, "action": "DEACTIVATE"})
            assert create(client, "again").status == 201
            assert "Traceback" not in server.log.read_text(errors="replace")
    finally:
        etcd.stop()
