"""A store in which a stock kube-apiserver writes protobuf is used as it is, also by both servers at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from integration.server.stored_objects import LISTS, NAMESPACED, OBJECTS, WIDGETS, Client, by_name, fill
from support import stock
from support.etcd import Etcd, running_etcd
from support.kube_apiserver import TOKENS, running_over
from support.server import running
from support.waiting import until
from tetrapod.cli.main import main
from tetrapod.generic.storage.encoding import PROTOBUF
from tetrapod.generic.storage.media_types import PROTOBUF as MEDIA_TYPE


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    with running_etcd(tmp_path / "etcd") as etcd:
        yield etcd


def check_lists(original: Client, ours: Client) -> int:
    """Check that objects which neither server has changed are equal, and return their number."""
    compared = 0
    for path in LISTS:
        expected, received = by_name(original.get(path)), by_name(ours.get(path))
        for name, item in expected.items():
            assert name in received
            if item["metadata"]["resourceVersion"] == received[name]["metadata"]["resourceVersion"]:
                assert received[name] == item
                compared += 1
    return compared


@pytest.mark.long
def test_both_servers_use_one_store(tmp_path: Path, etcd: Etcd) -> None:
    binary = stock.binaries()["kube-apiserver"]
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(TOKENS)
    flags = (f"--etcd-servers={etcd.url}", f"--token-auth-file={tokens}")
    one = f"{NAMESPACED}/configmaps/a"
    key = "/registry/configmaps/default/a"
    with running_over(etcd.url, binary, tmp_path / "stock") as stock_server:
        original = Client(stock_server.url, stock_server.ca)
        fill(original)
        assert etcd.value(key).startswith(PROTOBUF)
        with running(tmp_path / "ours", *flags) as server:
            ours = Client(server.url, server.ca)
            assert check_lists(original, ours) > 150
            for path in OBJECTS:
                assert ours.get(f"{path}/a") == original.get(f"{path}/a")
                assert by_name(ours.get(f"{path}?labelSelector=made%3Dstock&limit=1"))
            port = original.get(f"{NAMESPACED}/services/a")["spec"]["ports"][0]["nodePort"]
            spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}
            status, taken = ours.call("POST", f"{NAMESPACED}/services", {"metadata": {"name": "b"}, "spec": spec})
            assert (status, "already allocated" in taken["message"]) == (422, True)
            # An update that changes nothing stores the object as JSON, and the other server reads it.
            version = ours.get(one)["metadata"]["resourceVersion"]
            assert ours.call("PUT", one, ours.get(one))[0] == 200
            assert etcd.value(key).startswith(b"{")
            written = original.get(one)
            assert written["metadata"]["resourceVersion"] != version
            # A write of the other server is an event here, with the object before it for deletions.
            written["data"] = {"text": "changed"}
            assert original.call("PUT", one, written)[0] == 200
            assert etcd.value(key).startswith(PROTOBUF)
            assert original.call("DELETE", one)[0] == 200
            since = written["metadata"]["resourceVersion"]
            watch = f"{NAMESPACED}/configmaps?watch=1&timeoutSeconds=2&resourceVersion={since}&labelSelector=made"
            until(lambda: ours.call("GET", one)[0] == 404)
            events = ours.get(watch)
            assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
            assert all(event["object"]["data"] == {"text": "changed"} for event in events)


@pytest.mark.long
def test_a_stock_server_reads_and_changes_what_is_written_as_protobuf(tmp_path: Path, etcd: Etcd) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(TOKENS)
    flags = (f"--etcd-servers={etcd.url}", f"--token-auth-file={tokens}", f"--storage-media-type={MEDIA_TYPE}")
    with running(tmp_path / "ours", *flags) as server:
        ours = Client(server.url, server.ca)
        fill(ours)
        with running_over(etcd.url, stock.binaries()["kube-apiserver"], tmp_path / "stock") as stock_server:
            original = Client(stock_server.url, stock_server.ca)
            until(lambda: original.call("GET", WIDGETS)[0] == 200)
            assert check_lists(original, ours) > 150
            for path in OBJECTS:
                changed = original.get(f"{path}/a")
                assert changed == ours.get(f"{path}/a")
                changed["metadata"]["labels"]["made"] = "changed"
                status, written = original.call("PUT", f"{path}/a", changed)
                assert status == 200, written
                until(lambda path=path, written=written: ours.get(f"{path}/a") == written)  # type: ignore[misc]


@pytest.mark.long
def test_the_store_of_a_stopped_server_is_migrated(tmp_path: Path, etcd: Etcd) -> None:
    with running_over(etcd.url, stock.binaries()["kube-apiserver"], tmp_path / "stock") as stock_server:
        original = Client(stock_server.url, stock_server.ca)
        fill(original)
        expected = {path: original.get(f"{path}/a") for path in OBJECTS}
    moved = CliRunner().invoke(main, ["migrate", "--from", etcd.url, "--to", str(tmp_path / "ours")])
    assert moved.exit_code == 0, moved.output
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(TOKENS)
    with running(tmp_path / "ours", f"--token-auth-file={tokens}") as server:
        ours = Client(server.url, server.ca)
        for path, obj in expected.items():
            received = ours.get(f"{path}/a")
            received["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
            assert received == obj
