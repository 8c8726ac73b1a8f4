"""Garbage collection of built-in and custom dependents. Custom resources are watched from their first object on."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.definitions import definition
from support.server import Server, running
from support.waiting import until

GROUP = "gc.example.com"
_MAPS = "/api/v1/namespaces/default/configmaps"
_ADDS = 'workqueue_adds_total{name="garbage-collector-controller"}'
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextmanager
def serving(directory: Path) -> Iterator[Server]:
    (directory / "tokens.csv").write_text('gc-token,admin,admin,"system:masters"\n')
    with running(directory, "--token-auth-file", str(directory / "tokens.csv")) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("gc")) as found:
        yield found


def ask(server: Server, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": "Bearer gc-token", "Content-Type": "application/json"}
    request = urllib.request.Request(
        server.url + path, json.dumps(body).encode() if body else None, headers, method=method
    )
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read()
        return error.code, json.loads(text) if text.startswith(b"{") else {"message": text.decode()}


def made(server: Server, path: str, body: Any) -> dict[str, Any]:
    code, answer = ask(server, "POST", path, body)
    assert code == 201, answer
    return answer


def define(server: Server, kind: str) -> str:
    plural = kind.lower() + "s"
    made(server, _DEFINITIONS, definition(GROUP, kind))
    path = f"/apis/{GROUP}/v1/namespaces/default/{plural}"
    until(lambda: ask(server, "GET", path)[0] == 200)
    return path


def custom(kind: str, name: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name, **owned(owner)}}


def owned(owner: dict[str, Any] | None) -> dict[str, Any]:
    if owner is None:
        return {}
    meta = owner["metadata"]
    return {
        "ownerReferences": [
            {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
        ]
    }


def test_dependents_of_a_custom_object_are_deleted(server: Server) -> None:
    path = define(server, "Parent")
    parent = made(server, path, custom("Parent", "one"))
    made(server, path, custom("Parent", "child", parent))
    made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-parent", **owned(parent)}})
    assert ask(server, "DELETE", f"{path}/one")[0] == 200
    until(lambda: ask(server, "GET", f"{path}/child")[0] == 404)
    until(lambda: ask(server, "GET", f"{_MAPS}/of-parent")[0] == 404)


def test_a_custom_object_is_deleted_with_its_built_in_owner(server: Server) -> None:
    path = define(server, "Tail")
    owner = made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    made(server, path, custom("Tail", "one", owner))
    assert ask(server, "DELETE", f"{_MAPS}/owner")[0] == 200
    until(lambda: ask(server, "GET", f"{path}/one")[0] == 404)


def test_dependents_are_deleted_although_the_owner_was_not_watched_yet(server: Server) -> None:
    """Its kind is watched some seconds after its first object, and the object is deleted earlier."""
    path = define(server, "Mayfly")
    time.sleep(6)  # until the collector knows the kind: from here on an unknown kind does not trigger another lookup
    owner = made(server, path, custom("Mayfly", "owner"))
    made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "left", **owned(owner)}})
    time.sleep(0.5)  # the collector has looked it up and found its owner
    assert ask(server, "DELETE", f"{path}/owner")[0] == 200
    until(lambda: ask(server, "GET", f"{_MAPS}/left")[0] == 404)


def examined(server: Server) -> float:
    """Return how often an object was queued, because it may have to be deleted."""
    request = urllib.request.Request(f"{server.url}/metrics", headers={"Authorization": "Bearer gc-token"})
    with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
        (line,) = (line for line in answer.read().decode().splitlines() if line.startswith(_ADDS))
    return float(line.split()[1])


def test_changes_of_a_dependent_whose_owner_exists_do_not_examine_it(server: Server) -> None:
    """Otherwise each status of each pod would cause two reads."""
    owner = made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stays"}})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "changes", **owned(owner)}}
    made(server, _MAPS, body)
    orphan = {**owner, "metadata": {"name": "never", "uid": "no-such-uid"}}

    def pass_events(name: str) -> None:
        """Wait until the collector has seen the events up to now: it gets those of one resource in their order."""
        made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **owned(orphan)}})
        until(lambda: ask(server, "GET", f"{_MAPS}/{name}")[0] == 404)

    pass_events("first")
    before = examined(server)
    pass_events("second")
    alone = examined(server) - before
    for number in range(20):
        assert ask(server, "PUT", f"{_MAPS}/changes", {**body, "data": {"number": str(number)}})[0] == 200
    pass_events("third")
    assert alone > 0
    assert examined(server) - before == 2 * alone


@pytest.mark.parametrize(
    "changed",
    [{"name": "another"}, {"kind": "Secret"}, {"apiVersion": "apps/v1", "kind": "Deployment"}],
    ids=["name", "kind", "group"],
)
def test_a_reference_that_names_another_object_than_its_uid_is_no_owner(
    server: Server, changed: dict[str, str], request: pytest.FixtureRequest
) -> None:
    name = f"misnamed-{request.node.callspec.id}"
    owner = made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-owner"}})
    (reference,) = owned(owner)["ownerReferences"]
    metadata = {"name": name, "ownerReferences": [{**reference, **changed}]}
    made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    until(lambda: ask(server, "GET", f"{_MAPS}/{name}")[0] == 404)
    assert ask(server, "GET", f"{_MAPS}/{name}-owner")[0] == 200


def test_an_owner_of_another_namespace_is_no_owner(server: Server) -> None:
    made(server, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})
    maps = "/api/v1/namespaces/far/configmaps"
    owner = made(server, maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "far"}})
    made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "near", **owned(owner)}})
    until(lambda: ask(server, "GET", f"{_MAPS}/near")[0] == 404)
    assert ask(server, "GET", f"{maps}/far")[0] == 200


def test_a_dependent_that_appears_during_a_foreground_deletion_is_deleted(server: Server) -> None:
    owner = made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "leaving"}})
    held = {"name": "held", "finalizers": ["example.com/hold"], **owned(owner)}
    held["ownerReferences"][0]["blockOwnerDeletion"] = True
    made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    assert ask(server, "DELETE", f"{_MAPS}/leaving", {"propagationPolicy": "Foreground"})[0] == 200
    until(lambda: "deletionTimestamp" in ask(server, "GET", f"{_MAPS}/held")[1]["metadata"])
    made(server, _MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late", **owned(owner)}})
    until(lambda: ask(server, "GET", f"{_MAPS}/late")[0] == 404)
    assert ask(server, "GET", f"{_MAPS}/leaving")[0] == 200
    _, live = ask(server, "GET", f"{_MAPS}/held")
    del live["metadata"]["finalizers"]
    assert ask(server, "PUT", f"{_MAPS}/held", live)[0] == 200
    until(lambda: ask(server, "GET", f"{_MAPS}/leaving")[0] == 404)


def reflectors(server: Server) -> int:
    """Return how many resources the garbage collector watches."""
    request = urllib.request.Request(
        f"{server.url}/debug/pprof/heap?debug=2", headers={"Authorization": "Bearer gc-token"}
    )
    with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
        lines = answer.read().decode().splitlines()[1:]
    return sum(int(line.split()[0]) for line in lines if line.split()[2].endswith(".NodeReflector"))


@pytest.mark.long
def test_a_deleted_resource_is_not_watched_although_an_external_server_is_unavailable(tmp_path: Path) -> None:
    """Discovery is incomplete while a server is unavailable, but the group-versions of the others are known."""
    spec = {
        "group": "away.example.com",
        "version": "v1",
        "groupPriorityMinimum": 1,
        "versionPriority": 1,
        "insecureSkipTLSVerify": True,
    }
    api_service: dict[str, Any] = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.away.example.com"},
    }
    api_service["spec"] = {**spec, "service": {"namespace": "default", "name": "nowhere"}}
    with serving(tmp_path) as server:
        made(server, "/apis/apiregistration.k8s.io/v1/apiservices", api_service)
        path = define(server, "Leaver")
        before = until(lambda: reflectors(server))
        made(server, path, custom("Leaver", "one"))
        until(lambda: reflectors(server), lambda count: count > before, description="the watch of the new kind")
        assert ask(server, "DELETE", f"{_DEFINITIONS}/leavers.{GROUP}")[0] == 200
        until(lambda: reflectors(server), lambda count: count <= before, description="the end of the watch")
