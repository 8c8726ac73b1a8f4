"""Storage version migrations on a server with its migrator enabled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.definitions import definition, version
from support.https_client import MERGE, HttpsClient, Reply
from support.server import running

MIGRATIONS = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/gears.migrated.example.com"
GEARS = "/apis/migrated.example.com/v1/namespaces/default/gears"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with running(tmp_path_factory.mktemp("migrating"), "--controllers=*,storage-version-migrator-controller") as server:
        yield HttpsClient(server.kubeconfig)


def stored_in(stored: str) -> Any:
    """Return the definition of gears with the given storage version."""
    return definition("migrated.example.com", "Gear", *(version(name, storage=name == stored) for name in ("v1", "v2")))


def migration(name: str, resource: str, group: str = "") -> Any:
    return {
        "apiVersion": "storagemigration.k8s.io/v1",
        "kind": "StorageVersionMigration",
        "metadata": {"name": name},
        "spec": {"resource": {"group": group, "resource": resource}},
    }


def conditions(reply: Reply) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["message"]) for c in (reply.body.get("status") or {}).get("conditions") or ()}


def over(reply: Reply) -> bool:
    return conditions(reply).get("Running", ("", ""))[0] == "False"


def test_custom_objects_are_stored_in_the_new_version_and_the_definition_forgets_the_old_one(
    client: HttpsClient,
) -> None:
    assert client.call("POST", CRDS, stored_in("v1")).status == 201
    names = [f"g{i}" for i in range(3)]
    for name in names:
        obj = {"apiVersion": "migrated.example.com/v1", "kind": "Gear", "metadata": {"name": name}, "teeth": 8}
        assert client.until(lambda r: r.status == 201, "POST", GEARS, obj).status == 201
    before = {i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in client.call("GET", GEARS).body["items"]}
    versions = stored_in("v2")["spec"]["versions"]
    assert client.call("PATCH", CRD, {"spec": {"versions": versions}}, MERGE).body["status"]["storedVersions"] == [
        "v1",
        "v2",
    ]
    assert client.call("POST", MIGRATIONS, migration("gears", "gears", "migrated.example.com")).status == 201
    ended = client.until(over, "GET", f"{MIGRATIONS}/gears")
    assert conditions(ended) == {
        "Running": ("False", "Migration completed"),
        "Succeeded": ("True", "Migration completed"),
    }
    crd = client.call("GET", CRD)
    assert crd.body["status"]["storedVersions"] == ["v2"]
    assert conditions(crd)["StorageMigrating"] == (
        "False",
        "The migration has succeeded and the stored versions have been updated",
    )
    after = {i["metadata"]["name"]: i for i in client.call("GET", GEARS).body["items"]}
    assert all(
        int(after[name]["metadata"]["resourceVersion"]) > int(before[name]) and after[name]["teeth"] == 8
        for name in names
    )
    without = [{**v, "served": True} for v in versions if v["name"] == "v2"]
    # the old version can be removed now
    assert client.call("PATCH", CRD, {"spec": {"versions": without}}, MERGE).status == 200


def test_objects_in_the_current_storage_version_are_not_rewritten(client: HttpsClient) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    made = client.call("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "still"}}).body
    assert client.call("POST", MIGRATIONS, migration("configmaps", "configmaps")).status == 201
    assert conditions(client.until(over, "GET", f"{MIGRATIONS}/configmaps"))["Succeeded"][0] == "True"
    assert (
        client.call("GET", f"{path}/still").body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    )


def test_a_resource_that_cannot_be_written_is_not_migrated(client: HttpsClient) -> None:
    assert client.call("POST", MIGRATIONS, migration("statuses", "componentstatuses")).status == 201
    failed = conditions(client.until(over, "GET", f"{MIGRATIONS}/statuses"))["Failed"]
    text = 'resource "/v1, Resource=componentstatuses" does not support discovery operations: [update patch list]'
    assert failed == ("True", text)
