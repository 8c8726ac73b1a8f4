"""Definitions are stored in v1beta1, as upstream, and served as v1. Stored ones may be in v1, or lack a uid."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson

from support.definitions import definition, version
from support.etcd import running_etcd
from support.https_client import MERGE, HttpsClient
from support.server import running
from tetrapod.extensions.controllers.schemas import non_structural
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.machinery.gvk import Object

NAME = "foos.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KEY = f"/registry/apiextensions.k8s.io/customresourcedefinitions/{NAME}"
FOOS = "/apis/example.com/v1/namespaces/default/foos"
BETA: Object = {
    "kind": "CustomResourceDefinition",
    "apiVersion": "apiextensions.k8s.io/v1beta1",
    "metadata": {"name": NAME, "creationTimestamp": None},
    "spec": {
        "group": "example.com",
        "version": "v1",
        "names": {"plural": "foos", "kind": "Foo"},
        "scope": "Namespaced",
        "validation": {"openAPIV3Schema": {"type": "object", "properties": {"any": {}, "size": {"type": "integer"}}}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "JSONPath": ".size"}],
    },
    "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None},
}


async def _store(path: Path) -> None:
    backend = SqliteBackend(path)
    await backend.put_if(KEY, orjson.dumps(BETA), 0)
    await backend.close()


def test_a_definition_in_v1beta1_is_served_updated_and_deleted(tmp_path: Path) -> None:
    asyncio.run(_store(tmp_path / "tetrapod.db"))
    with running(tmp_path) as server:
        client = HttpsClient(server.kubeconfig)
        stored = client.until(lambda reply: "conditions" in str(reply.body), "GET", f"{CRDS}/{NAME}", timeout=60).body
        assert stored["apiVersion"] == "apiextensions.k8s.io/v1"
        assert stored["spec"]["names"] == {"plural": "foos", "kind": "Foo", "singular": "foo", "listKind": "FooList"}
        assert stored["spec"]["preserveUnknownFields"] is True
        (only,) = stored["spec"]["versions"]
        assert only["schema"] == BETA["spec"]["validation"]
        assert only["additionalPrinterColumns"] == [{"name": "Size", "type": "integer", "jsonPath": ".size"}]
        assert stored["status"]["storedVersions"] == ["v1"]
        foo = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "any": 1, "other": {"x": 1}}
        created = client.until(lambda reply: reply.status == 201, "POST", FOOS, foo, timeout=60).body
        assert (created["any"], created["other"]) == (1, {"x": 1})
        assert client.call("POST", FOOS, {**foo, "size": "s"}).status == 422
        changed = client.call("GET", f"{CRDS}/{NAME}").body
        changed["metadata"]["labels"] = {"a": "b"}
        assert (reply := client.call("PUT", f"{CRDS}/{NAME}", changed)).status == 200, reply.message
        # As upstream, a PATCH takes an object without uid for one that does not exist.
        assert client.call("PATCH", f"{CRDS}/{NAME}", {"metadata": {"labels": {}}}, MERGE).status == 404
        assert client.call("DELETE", f"{CRDS}/{NAME}").status == 200
        client.until(lambda reply: reply.status == 404, "GET", f"{CRDS}/{NAME}", timeout=60)


def test_definitions_get_the_condition_while_other_controllers_write_their_status(tmp_path: Path) -> None:
    with running_etcd(tmp_path / "etcd") as etcd, running(tmp_path, f"--etcd-servers={etcd.url}") as server:
        client = HttpsClient(server.kubeconfig)
        names = [f"foos.g{number}.example.com" for number in range(40)]
        for name in names:
            group = name.partition(".")[2]
            former = {**BETA, "metadata": {"name": name}, "spec": {**BETA["spec"], "group": group}}
            key = f"/registry/apiextensions.k8s.io/customresourcedefinitions/{name}"
            etcd.put(key, orjson.dumps(former))
        client.until(
            lambda reply: str(reply.body).count("'NonStructuralSchema'") == len(names), "GET", CRDS, timeout=60
        )


def test_a_definition_is_stored_in_v1beta1_and_one_in_v1_is_stored_again_by_any_update(tmp_path: Path) -> None:
    with running_etcd(tmp_path / "etcd") as etcd, running(tmp_path, f"--etcd-servers={etcd.url}") as server:
        client = HttpsClient(server.kubeconfig)
        created = client.call("POST", CRDS, shared("v1")).body
        stored = orjson.loads(etcd.value(KEY))
        assert stored["apiVersion"] == "apiextensions.k8s.io/v1beta1"
        assert stored["spec"]["validation"] == created["spec"]["versions"][0]["schema"]
        established = client.until(lambda reply: "Established" in str(reply.body), "GET", f"{CRDS}/{NAME}").body
        changed = established["metadata"].pop("resourceVersion")
        etcd.put(KEY, orjson.dumps(established))
        client.until(lambda reply: reply.body["metadata"]["resourceVersion"] != changed, "GET", f"{CRDS}/{NAME}")
        assert client.call("PATCH", f"{CRDS}/{NAME}", {"spec": {"scope": "Namespaced"}}, MERGE).status == 200
        assert orjson.loads(etcd.value(KEY))["apiVersion"] == "apiextensions.k8s.io/v1beta1"


def test_a_large_schema_of_several_versions_is_stored_once(tmp_path: Path) -> None:
    """etcd accepts 1.5 MB, and this definition has 1.8 MB in v1."""
    with running_etcd(tmp_path / "etcd") as etcd, running(tmp_path, f"--etcd-servers={etcd.url}") as server:
        client = HttpsClient(server.kubeconfig)
        large = shared("v1", "v2", "v3", description="x" * 600_000)
        assert (reply := client.call("POST", CRDS, large)).status == 201, reply.message
        assert len(etcd.value(KEY)) < 700_000
        served = client.call("GET", f"{CRDS}/{NAME}").body["spec"]["versions"]
        assert [one["schema"] for one in served] == [one["schema"] for one in large["spec"]["versions"]]


def shared(*names: str, description: str = "") -> Object:
    """Return a definition in v1 whose versions have one schema."""
    schema = {"type": "object", "description": description}
    versions = [version(name, storage=name == names[0], schema=schema) for name in names]
    return definition("example.com", "Foo", *versions)


def test_the_condition_of_a_non_structural_schema_names_the_schema_of_each_version() -> None:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}
    versions = [{"name": name, "served": True, "schema": schema} for name in ("v1", "v2")]
    found = non_structural({"spec": {"preserveUnknownFields": True, "versions": versions}})
    text = ".schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields"
    assert found is not None
    assert found["message"] == (
        "[spec.preserveUnknownFields: Invalid value: true: must be false, "
        f"spec.versions[0]{text}, spec.versions[1]{text}]"
    )
