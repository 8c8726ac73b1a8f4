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
