"""StorageVersions, behind the feature gate StorageVersionAPI: reports of this server, and removal of former ones."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from integration.server.stored_objects import Client
from support import stock
from support.etcd import running_etcd
from support.https_client import HttpsClient, Reply
from support.kube_apiserver import running_over
from support.server import running
from support.services import NAMES, running_services
from support.waiting import until
from tetrapod.generic.configuration.server_identity import identity_of

FLAGS: Final = ("--feature-gates=StorageVersionAPI=true", "--runtime-config=api/all=true")
PATH: Final = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
NAME: Final = "storageversion.integration.test.foos"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with running(tmp_path_factory.mktemp("storageversions"), *FLAGS) as server:
        yield HttpsClient(server.kubeconfig)


def reports(listed: Any) -> dict[str, Any]:
    """Return the single report of each StorageVersion by its name."""
    found = {}
    for item in listed["items"]:
        status = item["status"]
        assert len(status["storageVersions"]) == 1
        assert status["commonEncodingVersion"] == status["storageVersions"][0]["encodingVersion"]
        condition = status["conditions"][0]
        assert (condition["type"], condition["status"]) == ("AllEncodingVersionsEqual", "True")
        assert (condition["reason"], condition["message"]) == (
            "CommonEncodingVersionSet",
            "Common encoding version set",
        )
        found[item["metadata"]["name"]] = status["storageVersions"][0]
    return found


def test_a_ready_server_has_reported_all_resources_under_its_identity(client: HttpsClient) -> None:
    found = reports(client.call("GET", PATH).body)
    assert {"core.pods", "apps.deployments", "apiextensions.k8s.io.customresourcedefinitions"} <= found.keys()
    assert "events.k8s.io.events" not in found  # the objects of core.events
    leases = client.call("GET", f"{LEASES}?labelSelector=apiserver.kubernetes.io/identity%3Dkube-apiserver").body
    assert {report["apiServerID"] for report in found.values()} == {
        item["metadata"]["name"] for item in leases["items"]
    }
    versions = found["autoscaling.horizontalpodautoscalers"]
    assert versions["encodingVersion"] == "autoscaling/v2"
    assert set(versions["servedVersions"]) == {"autoscaling/v1", "autoscaling/v2"}


@pytest.mark.long
def test_reports_equal_those_of_a_stock_server(client: HttpsClient, tmp_path: Path) -> None:
    with (
        running_etcd(tmp_path / "etcd") as etcd,
        running_over(etcd.url, stock.binaries()["kube-apiserver"], tmp_path / "stock", *FLAGS) as server,
    ):
        original = Client(server.url, server.ca)
        expected = reports(until(lambda: original.get(PATH)))
    found = reports(client.call("GET", PATH).body)
    differences = {}
    for name in sorted(expected.keys() | found.keys()):
        theirs, ours = expected.get(name), found.get(name)
        if theirs is None or ours is None:
            differences[name] = (theirs, ours)
            continue
        if ours["encodingVersion"] != theirs["encodingVersion"]:
            differences[name] = (theirs["encodingVersion"], ours["encodingVersion"])
        if set(ours["servedVersions"]) != set(theirs["servedVersions"]):
            differences[name] = (theirs, ours)
        if not set(ours["servedVersions"]) <= set(ours["decodableVersions"]) <= set(theirs["decodableVersions"]):
            differences[name] = (theirs, ours)
    # Tetrapod stores definitions in v1, which kube-apiserver reads too.
    crds = "apiextensions.k8s.io.customresourcedefinitions"
    assert differences == {crds: ("apiextensions.k8s.io/v1beta1", "apiextensions.k8s.io/v1")}


def create(client: HttpsClient, *servers: str) -> None:
    """Create a StorageVersion with reports of servers, each with a version of its own."""
    entries = [
        {
            "apiServerID": server,
            "encodingVersion": server.replace("id-", "v"),
            "decodableVersions": [server.replace("id-", "v")],
        }
        for server in servers
    ]
    created = client.call("POST", PATH, {"metadata": {"name": NAME}, "spec": {}})
    assert created.status == 201, created.message
    status: dict[str, Any] = {"storageVersions": entries}
    if len(entries) == 1:
        status["commonEncodingVersion"] = entries[0]["encodingVersion"]
    written = client.call("PUT", f"{PATH}/{NAME}/status", {**created.body, "status": status})
    assert written.status == 200, written.message


def create_lease(client: HttpsClient, name: str) -> None:
    labels = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
    body = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 3600},
    }
    assert client.call("POST", LEASES, body).status == 201


def test_reports_of_servers_without_an_identity_lease_are_removed(client: HttpsClient) -> None:
    one = f"{PATH}/{NAME}"
    create(client, "id-none")
    client.until(lambda reply: reply.status == 404, "GET", one)
    create_lease(client, "id-a")
    create_lease(client, "id-b")
    create(client, "id-a", "id-b", "id-none")
    reply = client.until(lambda reply: len(reply.body["status"]["storageVersions"]) == 2, "GET", one)
    assert "commonEncodingVersion" not in reply.body["status"]
    assert reply.body["status"]["conditions"][0]["reason"] == "CommonEncodingVersionUnset"
    assert client.call("DELETE", f"{LEASES}/id-a").status == 200
    reply = client.until(lambda reply: len(reply.body["status"]["storageVersions"]) == 1, "GET", one)
    assert reply.body["status"]["commonEncodingVersion"] == "vb"
    assert reply.body["status"]["conditions"][0]["status"] == "True"
    assert client.call("DELETE", f"{LEASES}/id-b").status == 200
    client.until(lambda reply: reply.status == 404, "GET", one)


@pytest.mark.long
def test_each_service_reports_its_resources_under_an_identity_of_its_own(tmp_path: Path) -> None:
    with running_services(tmp_path, {"core": 2}, **dict.fromkeys(NAMES, FLAGS)) as services:
        client = HttpsClient(services.kubeconfig)
        ids = {
            key: identity_of(socket.gethostname(), f"{key.partition('-')[0]}:{services.ports[key]}")
            for key in services.keys
        }
        owners = {
            "core.pods": ("core", "core-2"),
            "apps.deployments": ("core", "core-2"),
            "apiextensions.k8s.io.customresourcedefinitions": ("extensions",),
            "rbac.authorization.k8s.io.clusterroles": ("auth",),
            "apiregistration.k8s.io.apiservices": ("aggregator",),
        }
        for name, keys in owners.items():
            expected = {ids[key] for key in keys}
            status = client.until(partial(reported_by, expected), "GET", f"{PATH}/{name}", timeout=60).body["status"]
            assert status["commonEncodingVersion"] == status["storageVersions"][0]["encodingVersion"]
            assert status["conditions"][0]["status"] == "True"
        role = {"metadata": {"name": "written"}, "rules": []}
        path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        client.until(lambda reply: reply.status == 201, "POST", path, role, timeout=30)
        assert services.stop("core-2") == 0
        assert client.call("DELETE", f"{LEASES}/{ids['core-2']}").status == 200
        client.until(partial(reported_by, {ids["core"]}), "GET", f"{PATH}/core.pods", timeout=60)


def reported_by(expected: set[str], reply: Reply) -> bool:
    """Return whether a StorageVersion has entries of these servers."""
    if reply.status != 200:
        return False
    return {entry["apiServerID"] for entry in reply.body["status"].get("storageVersions") or ()} == expected


def test_the_gate_without_the_api_is_logged(tmp_path: Path) -> None:
    with running(tmp_path, FLAGS[0]) as server:
        text = "StorageVersionAPI has no effect: --runtime-config does not enable internal.apiserver.k8s.io/v1alpha1"
        assert text in server.log.read_text()
