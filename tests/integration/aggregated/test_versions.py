"""Kinds of the library that are served in several versions, behind a server of `tetrapod.testing`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from support.kubectl import Kubectl
from tetrapod.generic.aggregated import AggregatedServer, Cluster, Kind, PrinterColumn, Settings, Version
from tetrapod.generic.aggregated.check_client import CheckClient
from tetrapod.generic.certificates import Pki
from tetrapod.testing import ApiError, Server, State
from tetrapod.testing.loop import LoopThread

GROUP = "library.example.com"
OLD, NEW = f"{GROUP}/v1alpha1", f"{GROUP}/v1"
Object = dict[str, Any]


class OldSpec(BaseModel):
    title: str = Field(min_length=1)
    copies: int = 1


class Status(BaseModel):
    lent: int = 0


class OldBook(BaseModel):
    spec: OldSpec
    status: Status | None = None


class NewSpec(BaseModel):
    name: str = Field(min_length=2)
    copies: int = 1
    language: str = "en"


class NewBook(BaseModel):
    spec: NewSpec
    status: Status | None = None


def to_old(obj: Object) -> Object:
    spec = obj["spec"]
    spec["title"] = spec.pop("name")
    language = spec.pop("language")
    obj["metadata"].setdefault("annotations", {})["language"] = language
    return obj


def to_new(obj: Object) -> Object:
    spec, annotations = obj["spec"], obj["metadata"].get("annotations", {})
    spec["name"] = spec.pop("title")
    if "language" in annotations:
        spec["language"] = annotations.pop("language")
        if not annotations:
            del obj["metadata"]["annotations"]
    return obj


COLUMNS = (PrinterColumn("Title", lambda book: book["spec"]["title"]),)
BOOK = Kind(
    OLD, "Book", OldBook, columns=COLUMNS, versions=(Version("v1", NewBook, to_old, to_new, "use v1alpha1 instead"),)
)


def broken(_: Object) -> Object:
    raise KeyError("gone")


FAULTY = Kind(OLD, "Fault", OldBook, versions=(Version("v1", OldBook, lambda obj: obj, broken),))


@pytest.fixture(scope="module")
def started() -> Iterator[Server]:
    with Server() as server:
        server.serve([BOOK, FAULTY])
        yield server


@pytest.fixture(scope="module")
def state(started: Server) -> State:
    return started.snapshot()


@pytest.fixture
def server(started: Server, state: State) -> Server:
    started.reset(state)
    return started


def book(api_version: str, named: str = "moby-dick", /, **spec: Any) -> Object:
    return {"apiVersion": api_version, "kind": "Book", "metadata": {"name": named}, "spec": spec}


def test_an_object_is_read_and_written_in_each_version(server: Server) -> None:
    created = server.client.create(book(NEW, name="Moby-Dick", language="fr"))
    assert (created["apiVersion"], created["spec"]) == (NEW, {"name": "Moby-Dick", "copies": 1, "language": "fr"})
    old = server.client.get(OLD, "Book", "moby-dick")
    assert (old["apiVersion"], old["spec"]) == (OLD, {"title": "Moby-Dick", "copies": 1})
    old["spec"]["copies"] = 2
    server.client.update(old)
    assert server.client.get(NEW, "Book", "moby-dick")["spec"] == {"name": "Moby-Dick", "copies": 2, "language": "fr"}
    assert [each["spec"]["name"] for each in server.client.list(NEW, "Book")] == ["Moby-Dick"]


def test_each_version_has_its_own_schema_and_defaults(server: Server) -> None:
    server.client.create(book(OLD, title="X"))
    assert server.client.get(NEW, "Book", "moby-dick")["spec"] == {"name": "X", "copies": 1, "language": "en"}
    with pytest.raises(ApiError) as caught:
        server.client.create(book(NEW, "short", name="X"))
    assert caught.value.code == 422
    assert caught.value.status["message"] == (
        'Book.library.example.com "short" is invalid: spec.name: Invalid value: "X": '
        "spec.name in body should be at least 2 chars long"
    )


def test_an_object_without_what_a_conversion_needs_is_invalid(server: Server) -> None:
    with pytest.raises(ApiError) as caught:
        server.client.create({"apiVersion": NEW, "kind": "Book", "metadata": {"name": "empty"}})
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


def test_managers_of_different_versions_apply_to_one_object(server: Server) -> None:
    server.client.create(book(OLD, title="Moby-Dick"))
    applied = server.client.apply(book(NEW, copies=3))
    assert applied["spec"] == {"name": "Moby-Dick", "copies": 3, "language": "en"}
    assert server.client.get(OLD, "Book", "moby-dick")["spec"]["copies"] == 3


def test_the_status_is_written_in_each_version(server: Server) -> None:
    server.client.create(book(OLD, title="Moby-Dick"))
    for lent, version in enumerate((OLD, NEW), 1):
        current = server.client.get(version, "Book", "moby-dick")
        server.client.update({**current, "status": {"lent": lent}}, subresource="status")
        assert server.client.get(OLD, "Book", "moby-dick")["status"] == {"lent": lent}


def test_a_watch_has_objects_of_its_version(server: Server) -> None:
    server.client.create(book(OLD, title="Moby-Dick"))
    events = server.client.watch(NEW, "Book")
    assert [event.object["spec"]["name"] for event in itertools.islice(events, 1)] == ["Moby-Dick"]


def test_columns_are_the_same_in_each_version_and_a_deprecated_one_warns(server: Server, tmp_path: Path) -> None:
    server.client.create(book(OLD, title="Moby-Dick"))
    kubectl = Kubectl(tmp_path, server.kubeconfig)
    outcomes = [kubectl.run("get", f"books.{version}.{GROUP}", "--no-headers") for version in ("v1alpha1", "v1")]
    assert [done.stdout.split()[:2] for done in outcomes] == [["moby-dick", "Moby-Dick"]] * 2
    assert [done.stderr for done in outcomes] == ["", "Warning: use v1alpha1 instead\n"]


def test_discovery_prefers_the_stable_version_and_openapi_has_both(server: Server) -> None:
    group = server.client.request("GET", f"/apis/{GROUP}")
    assert [each["version"] for each in group["versions"]] == ["v1", "v1alpha1"]
    for version, field in (("v1", "name"), ("v1alpha1", "title")):
        document = server.client.request("GET", f"/openapi/v3/apis/{GROUP}/{version}")
        schema = document["components"]["schemas"][f"com.example.library.{version}.Book"]
        assert field in schema["properties"]["spec"]["properties"]


def test_a_conversion_that_fails_is_an_internal_error_that_names_it(server: Server) -> None:
    server.client.create({**book(OLD, "faulty", title="x"), "kind": "Fault"})
    assert server.client.get(OLD, "Fault", "faulty")["spec"]["title"] == "x"
    with pytest.raises(ApiError) as caught:
        server.client.get(NEW, "Fault", "faulty")
    assert caught.value.code == 500
    assert f"conversion of Fault to {NEW} failed: KeyError: 'gone'" in caught.value.status["message"]


def test_stored_objects_are_converted_after_a_change_of_the_storage_version(server: Server, tmp_path: Path) -> None:
    before = Kind(OLD, "Book", OldBook)
    after = Kind(NEW, "Book", NewBook, versions=(Version("v1alpha1", OldBook, to_new, to_old),))
    with serving(before, server, tmp_path) as client:
        created = client.ask(f"/apis/{OLD}/namespaces/default/books", method="POST", **body(book(OLD, title="Ahab")))
        assert created.object["spec"] == {"title": "Ahab", "copies": 1}
    with serving(after, server, tmp_path) as client:
        assert client.ask(f"/apis/{GROUP}").object["preferredVersion"]["version"] == "v1"
        path = f"/apis/{NEW}/namespaces/default/books/moby-dick"
        expected = {"name": "Ahab", "copies": 1, "language": "en"}
        assert client.ask(path).object["spec"] == expected
        patched = client.ask(path, method="PATCH", **body({"spec": {"copies": 2}}, "application/merge-patch+json"))
        assert patched.object["spec"] == {**expected, "copies": 2}
        assert client.ask(path.replace(NEW, OLD)).object["spec"] == {"title": "Ahab", "copies": 2}


def body(obj: Object, content_type: str = "application/json") -> dict[str, Any]:
    return {"body": json.dumps(obj).encode(), "content_type": content_type}


@contextmanager
def serving(kind: Kind, server: Server, directory: Path) -> Iterator[CheckClient]:
    """Run an aggregated server over the database in the directory, and yield a client that acts as the front proxy."""
    settings = Settings(Cluster.from_kubeconfig(str(server.kubeconfig)), directory, "127.0.0.1", 0)
    loop = LoopThread("aggregated")
    try:
        aggregated = AggregatedServer([kind], settings)
        loop.call(aggregated.start())
        try:
            certificate, key = Pki(server.directory / "pki").front_proxy_client
            yield CheckClient(f"https://localhost:{aggregated.port}", certificate, key)
        finally:
            loop.call(aggregated.stop())
    finally:
        loop.close()


def test_versions_of_the_same_name_are_rejected() -> None:
    with pytest.raises(ValueError, match="Book has two versions of the same name"):
        Kind(OLD, "Book", OldBook, versions=(Version("v1alpha1", NewBook, to_old, to_new),))
