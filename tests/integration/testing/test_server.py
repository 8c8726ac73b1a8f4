"""The promises of `tetrapod.testing`: states can be saved, restored and forked, and resource versions never go back."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tetrapod.testing import ApiError, Server
from tetrapod.testing.client import Client, Event

CRDS = Path(__file__).parents[3] / "deploy/examples/operator-go/crds"
SITE = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "blog"}, "spec": {"title": "Blog"}}


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(running: Server) -> Iterator[Server]:
    running.reset()
    yield running
    running.close_forks()


def config_map(name: str, owner: dict[str, Any] | None = None, **data: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def names(client: Client, kind: str = "ConfigMap", version: str = "v1", namespace: str = "default") -> set[str]:
    return {item["metadata"]["name"] for item in client.list(version, kind, namespace)}


def until(server: Server, holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        server.settle()
    raise AssertionError


def gone(call: Callable[[], object]) -> bool:
    try:
        call()
    except ApiError as error:
        return error.code == 404
    return False


def test_restoring_a_snapshot_undoes_later_writes(server: Server) -> None:
    kept = server.client.create(config_map("kept", text="before"))
    server.client.create(config_map("removed"))
    before = server.snapshot()
    server.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}})
    server.client.create(config_map("added"))
    server.client.patch("v1", "ConfigMap", "kept", {"data": {"text": "after"}})
    server.client.delete("v1", "ConfigMap", "removed")
    server.reset(before)
    assert names(server.client) == {"kept", "removed", "kube-root-ca.crt"}
    found = server.client.get("v1", "ConfigMap", "kept")
    assert (found["data"], found["metadata"]["uid"]) == ({"text": "before"}, kept["metadata"]["uid"])
    assert int(found["metadata"]["resourceVersion"]) > int(kept["metadata"]["resourceVersion"])
    assert "extra" not in names(server.client, "Namespace", namespace="")
    server.client.create(config_map("added"))  # its name can be used again


def test_a_watch_that_is_open_is_reported_and_never_goes_backwards(server: Server) -> None:
    events: list[Event] = []
    opened, ended = threading.Event(), threading.Event()

    def follow() -> None:
        client = server.connect()
        version = client.request("GET", "/api/v1/namespaces/default/configmaps")["metadata"]["resourceVersion"]
        watch = client.watch("v1", "ConfigMap", "default", resourceVersion=version)
        opened.set()
        for event in watch:
            events.append(event)
            if event.object["metadata"]["name"] == "last":
                break
        watch.close()  # type: ignore[attr-defined]
        ended.set()

    server.client.create(config_map("present", text="before"))
    before = server.snapshot()
    thread = threading.Thread(target=follow)
    thread.start()
    assert opened.wait(10)
    server.client.create(config_map("added"))
    server.client.delete("v1", "ConfigMap", "present")
    server.reset(before)
    server.client.create(config_map("last"))
    assert ended.wait(10)
    thread.join()
    received = [(event.type, event.object["metadata"]["name"]) for event in events]
    assert received == [
        ("ADDED", "added"),
        ("DELETED", "present"),
        ("DELETED", "added"),
        ("ADDED", "present"),
        ("ADDED", "last"),
    ]
    versions = [int(event.object["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize("time", range(3))
def test_owners_and_what_they_own_come_back_together(server: Server, time: int) -> None:
    """The garbage collector has just learned that the owner was deleted."""
    owner = server.client.create(config_map("owner"))
    middle = server.client.create(config_map("middle", owner))
    server.client.create(config_map("leaf", middle))
    before = server.snapshot()
    server.client.delete("v1", "ConfigMap", "owner")
    until(server, lambda: names(server.client) == {"kube-root-ca.crt"})
    server.reset(before)
    server.settle()
    assert names(server.client) == {"owner", "middle", "leaf", "kube-root-ca.crt"}


def test_definitions_come_and_go_with_their_objects(server: Server) -> None:
    server.apply(CRDS)
    server.client.create(SITE)
    with_definition = server.snapshot()
    server.client.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "sites.example.com")
    until(server, lambda: gone(lambda: server.client.list("example.com/v1", "Site")))
    server.reset(with_definition)
    assert names(server.client, "Site", "example.com/v1") == {"blog"}
    with pytest.raises(ApiError, match="Required value"):
        server.client.create({**SITE, "metadata": {"name": "bad"}, "spec": {}})
    server.reset()
    assert gone(lambda: server.client.list("example.com/v1", "Site"))


def test_restoring_a_snapshot_releases_allocations(server: Server) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    ports = [{"port": 80, "nodePort": 30080}]
    wanted = {**service, "spec": {"type": "NodePort", "clusterIP": "10.0.0.77", "ports": ports}}
    for _ in range(3):
        server.client.create(wanted)
        with pytest.raises(ApiError, match="already allocated"):
            server.client.create({**wanted, "metadata": {"name": "other"}})
        server.reset()


def test_a_namespace_that_is_going_is_back_as_it_was(server: Server) -> None:
    server.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "work"}})
    server.client.create(config_map("content"), namespace="work")
    before = server.snapshot()
    server.client.delete("v1", "Namespace", "work")
    server.reset(before)
    assert server.client.get("v1", "Namespace", "work")["status"] == {"phase": "Active"}
    assert "content" in names(server.client, namespace="work")
    server.client.create(config_map("more"), namespace="work")
    server.client.delete("v1", "Namespace", "work")
    until(server, lambda: gone(lambda: server.client.get("v1", "Namespace", "work")))


def test_a_fork_has_everything_and_goes_its_own_way(server: Server) -> None:
    server.apply(CRDS)
    version = server.client.create(SITE)["metadata"]["resourceVersion"]
    before = server.snapshot()
    fork = server.fork()
    assert fork.client.get("example.com/v1", "Site", "blog")["metadata"]["resourceVersion"] == version
    fork.client.create(config_map("only-there"))
    server.client.create(config_map("only-here"))
    assert names(fork.client) == {"only-there", "kube-root-ca.crt"}
    assert names(server.client) == {"only-here", "kube-root-ca.crt"}
    fork.reset(before)  # a state of one server can be restored in the other
    assert names(fork.client) == {"kube-root-ca.crt"}
    assert fork.ca.read_bytes() == server.ca.read_bytes()
    url = fork.url
    server.close_forks()
    with pytest.raises(OSError, match="refused"):
        Client(url, server.ca, server.token).request("GET", "/version")


def test_manifests_of_every_form_are_applied(server: Server, tmp_path: Path) -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: text}\n---\napiVersion: v1\nkind: ConfigMap\n"
        "metadata: {name: second}\n"
    )
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "one.yaml").write_text(text.replace("text", "file"))
    listed = {"apiVersion": "v1", "kind": "List", "items": [config_map("item")]}
    applied = server.apply([text, tmp_path, listed, SITE, CRDS])
    assert [obj["metadata"]["name"] for obj in applied] == [
        "text",
        "second",
        "file",
        "second",
        "item",
        "blog",
        "sites.example.com",
    ]
    assert names(server.client) >= {"text", "second", "file", "item"}


def test_the_official_client_is_ready(server: Server) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    found = kubernetes.client.CoreV1Api(server.kubernetes_client()).list_namespace()
    assert {item.metadata.name for item in found.items} >= {"default", "kube-system"}


def test_flags_are_those_of_up() -> None:
    with Server(["--controllers=-*", "--anonymous-auth=false"]) as server:
        with pytest.raises(ApiError) as rejected:
            server.connect("nonsense").request("GET", "/api")
        assert rejected.value.code == 401
        server.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "stays"}})
        server.client.delete("v1", "Namespace", "stays")
        server.settle()
        assert server.client.get("v1", "Namespace", "stays")["status"]["phase"] == "Terminating"
    assert not server.directory.exists()


def test_a_port_taken_by_another_process_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the choice of the port and its use."""
    from tetrapod.testing import server as module

    with socket.create_server(("127.0.0.1", 0)) as taken:
        chosen = module._options
        ports = iter([taken.getsockname()[1]])

        def options(*arguments: Any) -> Any:
            parsed = chosen(*arguments)
            return replace(parsed, serving=replace(parsed.serving, secure_port=next(ports, parsed.serving.secure_port)))

        monkeypatch.setattr(module, "_options", options)
        with Server() as server:
            assert server.client.request("GET", "/version")["major"] == "1"


def test_it_starts_and_ends_within_a_loop_of_the_callers() -> None:
    async def test() -> str:
        with Server() as server:
            found: str = server.client.get("v1", "Namespace", "default")["metadata"]["name"]
            return found

    assert asyncio.run(test()) == "default"


def test_a_watch_that_another_thread_reads_ends_with_the_server() -> None:
    begun, events = threading.Event(), []

    def read(client: Client) -> None:
        for event in client.watch("v1", "Namespace"):
            events.append(event)
            begun.set()

    server = Server()
    reader = threading.Thread(target=read, args=(server.connect(),))
    reader.start()
    assert begun.wait(30)
    before = monotonic()
    server.close()
    reader.join(30)
    assert not reader.is_alive()
    assert monotonic() - before < Client.TIMEOUT / 2, "nothing was waited for until it timed out"


def test_a_closed_server_raises_an_error() -> None:
    server = Server()
    server.close()
    server.close()
    for use in (
        server.connect,
        server.snapshot,
        server.reset,
        server.fork,
        server.settle,
        lambda: server.client,
        lambda: server.url,
    ):
        with pytest.raises(RuntimeError, match="closed"):
            use()


@pytest.mark.parametrize("flag", ["--data-dir=elsewhere", "--etcd-servers=http://127.0.0.1:2379"])
def test_another_store_is_rejected(flag: str) -> None:
    with pytest.raises(ValueError, match="in memory"):
        Server([flag])
