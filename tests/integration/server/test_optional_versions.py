"""The group-versions that only --runtime-config enables: conversion, storage version, discovery and warnings.

The expected objects and texts are those of a kube-apiserver v1.37.1 with the same flags.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.failing_starts import start_error
from support.https_client import APPLY, MERGE, HttpsClient
from support.server import running
from support.services import NAMES, running_services
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.types import groups

pytestmark = pytest.mark.long

FLAGS = "--runtime-config=api/beta=true,api/alpha=true"
NAMESPACE = "namespaces/default/"

Server = tuple[HttpsClient, Path]

CASES: list[tuple[str, str, str, str, Object, tuple[str, ...], str]] = [
    (
        "resource.k8s.io",
        NAMESPACE,
        "resourceclaims",
        "ResourceClaim",
        {"devices": {"requests": [{"name": "r", "deviceClassName": "c"}]}},
        ("v1beta1", "v1beta2", "v1"),
        "v1",
    ),
    (
        "resource.k8s.io",
        NAMESPACE,
        "resourceclaimtemplates",
        "ResourceClaimTemplate",
        {"spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "c"}]}}},
        ("v1beta1", "v1beta2", "v1"),
        "v1",
    ),
    (
        "resource.k8s.io",
        "",
        "resourceslices",
        "ResourceSlice",
        {
            "driver": "d",
            "nodeName": "n",
            "pool": {"name": "p", "resourceSliceCount": 1},
            "devices": [{"name": "x", "basic": {"attributes": {"a": {"int": 1}}}}],
        },
        ("v1beta1", "v1beta2", "v1"),
        "v1",
    ),
    ("resource.k8s.io", "", "deviceclasses", "DeviceClass", {}, ("v1beta1", "v1beta2", "v1"), "v1"),
    (
        "resource.k8s.io",
        "",
        "devicetaintrules",
        "DeviceTaintRule",
        {"taint": {"key": "k", "effect": "NoSchedule"}},
        ("v1alpha3", "v1beta2", "v1"),
        "v1beta2",
    ),
    (
        "storagemigration.k8s.io",
        "",
        "storageversionmigrations",
        "StorageVersionMigration",
        {"resource": {"group": "apps", "resource": "deployments"}},
        ("v1beta1", "v1"),
        "v1beta1",
    ),
    (
        "admissionregistration.k8s.io",
        "",
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        {"policyName": "a"},
        ("v1alpha1", "v1beta1", "v1"),
        "v1",
    ),
    (
        "resource.k8s.io",
        "",
        "resourcepoolstatusrequests",
        "ResourcePoolStatusRequest",
        {"driver": "d"},
        ("v1alpha3",),
        "v1alpha3",
    ),
    (
        "coordination.k8s.io",
        NAMESPACE,
        "leasecandidates",
        "LeaseCandidate",
        {
            "leaseName": "l",
            "binaryVersion": "1.37.0",
            "emulationVersion": "1.36.0",
            "strategy": "OldestEmulationVersion",
        },
        ("v1alpha2", "v1beta1"),
        "v1beta1",
    ),
    (
        "admissionregistration.k8s.io",
        "",
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": ["no"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}
                ]
            },
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
        },
        ("v1alpha1", "v1beta1", "v1"),
        "v1",
    ),
]
"""Group, namespace part of the path, resource, kind, spec in the first version, versions, storage version."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("optional")
    with running(directory, FLAGS) as running_server:
        yield HttpsClient(running_server.kubeconfig), directory


def stored(directory: Path, prefix: str) -> Object:
    """Return the stored object whose key begins with `prefix`."""
    with sqlite3.connect(directory / "tetrapod.db") as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f"SELECT * FROM {table}"):
                key = next((value for value in row if isinstance(value, str) and prefix in value), None)
                value = next((value for value in row if isinstance(value, bytes) and value.startswith(b"{")), None)
                if key is not None and value is not None:
                    found: Object = json.loads(value)
                    return found
    raise AssertionError(f"nothing is stored below {prefix}")


@pytest.mark.parametrize(("group", "place", "resource", "kind", "spec", "versions", "storage"), CASES)
def test_an_object_is_the_same_in_all_versions(
    server: Server,
    group: str,
    place: str,
    resource: str,
    kind: str,
    spec: Object,
    versions: tuple[str, ...],
    storage: str,
) -> None:
    client, directory = server

    def path(version: str, name: str = "") -> str:
        return f"/apis/{group}/{version}/{place}{resource}{'/' + name if name else ''}"

    body = {"metadata": {"name": "one"}, "spec": spec}
    created = client.call("POST", path(versions[0]), body)
    assert created.status == 201, created.message
    assert stored(directory, f"{resource}/{'default/' if place else ''}one")["apiVersion"] == f"{group}/{storage}"
    read: dict[str, Any] = {}
    for version in versions:
        reply = client.call("GET", path(version, "one"))
        assert reply.status == 200, version
        assert (reply.body["apiVersion"], reply.body["kind"]) == (f"{group}/{version}", kind)
        assert [item["metadata"]["name"] for item in client.call("GET", path(version)).body["items"]] == ["one"]
        read[version] = reply.body
    assert read[versions[0]] == created.body
    for version in versions:
        patched = client.call("PATCH", path(version, "one"), {"metadata": {"labels": {"in": version}}}, MERGE)
        assert (patched.status, patched.body["metadata"]["labels"]["in"]) == (200, version)
        assert patched.body["spec"] == read[version]["spec"]
        replaced = client.call("PUT", path(version, "one"), patched.body)
        assert (replaced.status, replaced.body["spec"]) == (200, read[version]["spec"]), replaced.message
        declared = {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"labels": {"applied": version}}}
        applied = client.call("PATCH", f"{path(version, 'one')}?fieldManager=test", declared, APPLY)
        assert (applied.status, applied.body["metadata"]["labels"]["applied"]) == (200, version), applied.message
        listed = {entry["name"]: entry for entry in client.call("GET", f"/apis/{group}/{version}").body["resources"]}
        assert listed[resource]["kind"] == kind
        assert (
            path(version, "{name}").replace("default", "{namespace}")
            in (client.call("GET", f"/openapi/v3/apis/{group}/{version}").body["paths"])
        )
    deleted = client.call("DELETE", path(versions[0], "one"))
    assert deleted.status == 200


def test_a_watch_converts_to_its_version(server: Server) -> None:
    client, _ = server
    base = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    claim = {
        "metadata": {"name": "watched"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
    }
    version = client.call("GET", base).body["metadata"]["resourceVersion"]
    assert client.call("POST", base, claim).status == 201
    old = base.replace("/v1/", "/v1beta1/")
    event = client.call("GET", f"{old}?watch=true&timeoutSeconds=1&resourceVersion={version}").body
    assert event["type"] == "ADDED"
    assert event["object"]["apiVersion"] == "resource.k8s.io/v1beta1"
    assert event["object"]["spec"]["devices"]["requests"] == [
        {"name": "r", "deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    ]


def test_v1beta1_of_device_requests_and_devices_differs(server: Server) -> None:
    client, _ = server
    base = "/apis/resource.k8s.io/{}/namespaces/default/resourceclaims"
    requests = [
        {"name": "r", "deviceClassName": "c", "tolerations": [{"key": "k"}]},
        {"name": "f", "firstAvailable": [{"name": "s", "deviceClassName": "c", "count": 3}]},
    ]
    body = {"metadata": {"name": "both"}, "spec": {"devices": {"requests": requests}}}
    created = client.call("POST", base.format("v1beta1"), body)
    alternatives = [{"name": "s", "deviceClassName": "c", "allocationMode": "ExactCount", "count": 3}]
    exact = {
        "deviceClassName": "c",
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": [{"key": "k", "operator": "Equal"}],
    }
    assert created.body["spec"]["devices"]["requests"] == [
        {"name": "r", **exact},
        {"name": "f", "deviceClassName": "", "firstAvailable": alternatives},
    ]
    for version in ("v1", "v1beta2"):
        assert client.call("GET", base.format(version) + "/both").body["spec"]["devices"]["requests"] == [
            {"name": "r", "exactly": exact},
            {"name": "f", "firstAvailable": alternatives},
        ]
    neither = {"metadata": {"name": "none"}, "spec": {"devices": {"requests": [{"name": "r"}]}}}
    assert client.call("POST", base.format("v1beta1"), neither).message == (
        'ResourceClaim.resource.k8s.io "none" is invalid: spec.devices.requests[0]: Required value: '
        "exactly one of `exactly` or `firstAvailable` is required"
    )
    spec = {"driver": "d", "allNodes": True, "pool": {"name": "p", "resourceSliceCount": 1}, "devices": [{"name": "x"}]}
    slices = "/apis/resource.k8s.io/{}/resourceslices"
    assert client.call("POST", slices.format("v1"), {"metadata": {"name": "s"}, "spec": spec}).status == 201
    converted = client.call("GET", slices.format("v1beta1") + "/s").body["spec"]
    assert (converted["allNodes"], converted["devices"]) == (True, [{"name": "x", "basic": {}}])
    assert "nodeName" not in converted


def test_only_v1_of_device_taint_rules_requires_a_resource_version(server: Server) -> None:
    client, _ = server
    base = "/apis/resource.k8s.io/{}/devicetaintrules"
    rule: Object = {"metadata": {"name": "rule"}, "spec": {"taint": {"key": "k", "effect": "NoSchedule"}}}
    assert client.call("POST", base.format("v1alpha3"), rule).status == 201
    assert client.call("PUT", base.format("v1beta2") + "/rule", rule).status == 200
    old = "2001-01-01T00:00:00Z"
    patch = {"spec": {"taint": {"effect": "NoSchedule", "timeAdded": old}}}
    patched = client.call("PATCH", base.format("v1") + "/rule", patch, MERGE)
    assert patched.body["spec"]["taint"]["timeAdded"] == old
    patch = {"spec": {"taint": {"effect": "NoExecute"}}}
    assert client.call("PATCH", base.format("v1") + "/rule", patch, MERGE).body["spec"]["taint"]["timeAdded"] > old
    assert "must be specified for an update" in client.call("PUT", base.format("v1") + "/rule", rule).message
    assert client.call("DELETE", base.format("v1beta2") + "/rule").body["kind"] == "DeviceTaintRule"


def test_v1alpha1_of_policy_bindings_has_a_default_of_its_own(server: Server) -> None:
    client, _ = server
    base = "/apis/admissionregistration.k8s.io/{}/mutatingadmissionpolicybindings"
    body = {"metadata": {"name": "default"}, "spec": {"policyName": "a", "paramRef": {"name": "x"}}}
    created = client.call("POST", base.format("v1alpha1"), body)
    assert created.body["spec"]["paramRef"]["parameterNotFoundAction"] == "Deny"
    body["metadata"] = {"name": "none"}
    assert client.call("POST", base.format("v1beta1"), body).status == 422


def test_lease_candidates_are_validated(server: Server) -> None:
    client, _ = server
    path = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"

    def message(**spec: str) -> str:
        return client.call("POST", path, {"metadata": {"name": "x"}, "spec": spec}).message.partition("invalid: ")[2]

    assert message() == (
        "[spec.leaseName: Required value, spec.binaryVersion: Required value, spec.strategy: Required value]"
    )
    assert message(leaseName="l", binaryVersion="1.36.0", emulationVersion="1.37.0", strategy="foo") == (
        '[spec.binaryVersion: Invalid value: "1.36.0": must be greater than or equal to `emulationVersion`, '
        'spec.strategy.strategy: Unsupported value: "foo": supported values: "OldestEmulationVersion"]'
    )
    assert message(leaseName="l", binaryVersion="1.36.0", strategy="OldestEmulationVersion") == (
        "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'"
    )
    candidate = {"spec": {"leaseName": "l", "binaryVersion": "1.0.0", "strategy": "a.b/c"}}
    assert client.call("POST", path, {"metadata": {"name": "f", "finalizers": ["1"]}, **candidate}).status == 201
    assert client.call("PUT", f"{path}/put", {"metadata": {"name": "put"}, **candidate}).status == 201
    renamed = client.call("PATCH", f"{path}/put", {"spec": {"leaseName": "m"}}, MERGE)
    assert renamed.message.endswith('spec.leaseName: Invalid value: "m": field is immutable')


def test_storage_versions_of_servers_are_validated(server: Server) -> None:
    client, directory = server
    path = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
    for name, text in (
        ("pods", "name must be in the form of <group>.<resource>"),
        ("apps.9", "the resource segment a DNS-1035 label"),
    ):
        assert text in client.call("POST", path, {"metadata": {"name": name}, "spec": {}}).message
    created = client.call("POST", path, {"metadata": {"name": "apps.deployments"}})
    assert (created.status, created.body["spec"], created.body["status"]) == (201, {}, {})
    assert "managedFields" not in created.body["metadata"]
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    listed = client.with_headers(table).call("GET", path).body["rows"]
    assert [row["cells"][:3] for row in listed] == [["apps.deployments", "<unset>", "<unset>"]]
    assert stored(directory, "storageversions/apps.deployments")["apiVersion"] == "internal.apiserver.k8s.io/v1alpha1"
    report = {"apiServerID": "a", "encodingVersion": "apps/v1", "decodableVersions": ["apps/v1"]}
    status: Object = {"status": {"storageVersions": [report], "commonEncodingVersion": "apps/v1"}}
    assert client.call("PATCH", f"{path}/apps.deployments/status", status, MERGE).status == 200
    status = {"status": {"storageVersions": [report, {**report, "servedVersions": ["apps/v2"]}]}}
    message = client.call("PATCH", f"{path}/apps.deployments/status", status, MERGE).message
    assert 'storageVersions[1].apiServerID: Duplicate value: "a"' in message
    assert "apps/v2 must be included in decodableVersions : [apps/v1]" in message
    status = {"status": {"commonEncodingVersion": None}}
    message = client.call("PATCH", f"{path}/apps.deployments/status", status, MERGE).message
    assert message.endswith("commonEncodingVersion: Invalid value: null: the common encoding version is apps/v1")


def test_the_status_of_a_pool_request_is_set_once(server: Server) -> None:
    client, _ = server
    path = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
    body = {"metadata": {"name": "once"}, "spec": {"driver": "d"}, "status": {"poolCount": 1}}
    created = client.call("POST", path, body).body
    assert created["spec"] == {"driver": "d", "limit": 100}
    assert "status" not in created
    changed = client.call("PATCH", f"{path}/once", {"spec": {"driver": "e"}}, MERGE)
    assert changed.message.endswith("spec: Invalid value: null: field is immutable")
    limit = {"metadata": {"name": "many"}, "spec": {"driver": "d", "poolName": "", "limit": 5000}}
    assert client.call("POST", path, limit).message.endswith(
        '[spec.poolName: Invalid value: "": segment 0: must not be empty, '
        "spec.limit: Invalid value: 5000: must be less than or equal to 1000]"
    )
    pools = [{"driver": "d", "poolName": "p", "generation": 1, "totalDevices": -1}]
    wrong = client.call("PATCH", f"{path}/once/status", {"status": {"pools": pools}}, MERGE)
    assert wrong.message.endswith(
        "[status.poolCount: Required value, "
        "status.pools[0].totalDevices: Invalid value: -1: must be greater than or equal to 0]"
    )
    assert client.call("PATCH", f"{path}/once/status", {"status": {"poolCount": 0}}, MERGE).status == 200
    again = client.call("PATCH", f"{path}/once/status", {"status": {"poolCount": 1}}, MERGE)
    assert again.message.endswith(
        'status: Invalid value: {"PoolCount":1,"Pools":null,"Conditions":null}: field is immutable'
    )


def test_deprecated_versions_warn_also_on_subresources(server: Server) -> None:
    client, _ = server
    text = '299 - "resource.k8s.io/{} is deprecated in v1.{}+, unavailable in v1.{}+"'
    for path, expected in (
        ("v1beta1/resourceslices", [text.format("v1beta1 ResourceSlice", 35, 38)]),
        ("v1beta2/resourceslices/none", [text.format("v1beta2 ResourceSlice", 36, 39)]),
        ("v1alpha3/devicetaintrules/none/status", [text.format("v1alpha3 DeviceTaintRule", 36, 39)]),
        ("v1beta2/devicetaintrules", []),
        ("v1/resourceslices", []),
    ):
        assert client.call("GET", f"/apis/resource.k8s.io/{path}").warnings == expected, path


def test_discovery_lists_the_versions_in_upstreams_order(server: Server) -> None:
    client, _ = server
    served = {
        group["name"]: [version["version"] for version in group["versions"]]
        for group in client.call("GET", "/apis").body["groups"]
    }
    assert served["resource.k8s.io"] == ["v1", "v1beta2", "v1beta1", "v1alpha3"]
    assert served["admissionregistration.k8s.io"] == ["v1", "v1beta1", "v1alpha1"]
    assert served["certificates.k8s.io"] == ["v1", "v1beta1"]
    assert served["storagemigration.k8s.io"] == ["v1", "v1beta1"]
    assert served["coordination.k8s.io"] == ["v1", "v1beta1", "v1alpha2"]
    assert list(served)[-2:] == ["internal.apiserver.k8s.io", "storagemigration.k8s.io"]
    # as in kube-apiserver, these need a feature gate too
    assert served["scheduling.k8s.io"] == ["v1"]
    assert "lifecycle.k8s.io" not in served


def test_by_default_no_optional_version_is_served(tmp_path: Path) -> None:
    with running(tmp_path) as running_server:
        client = HttpsClient(running_server.kubeconfig)
        served = [
            version["groupVersion"]
            for group in client.call("GET", "/apis").body["groups"]
            for version in group["versions"]
        ]
        optional = [f"{group.name}/{version}" for group in groups() for version in group.optional]
        assert optional
        assert not set(served) & set(optional)
        assert client.call("GET", "/apis/resource.k8s.io/v1beta1/resourceclaims").status == 404
        documents = client.call("GET", "/openapi/v3").body["paths"]
        assert not {f"apis/{version}" for version in optional} & documents.keys()


def test_a_single_resource_of_a_version_can_be_enabled(tmp_path: Path) -> None:
    with running(tmp_path, "--runtime-config=resource.k8s.io/v1beta1/deviceclasses=true") as running_server:
        client = HttpsClient(running_server.kubeconfig)
        resources = client.call("GET", "/apis/resource.k8s.io/v1beta1").body["resources"]
        assert [resource["name"] for resource in resources] == ["deviceclasses"]
        assert client.call("GET", "/apis/resource.k8s.io/v1beta1/resourceslices").status == 404


def test_an_emulated_release_has_its_own_versions(tmp_path: Path) -> None:
    flags = ("--emulated-version=1.36", "--runtime-config=api/beta=true", "--feature-gates=StorageVersionMigrator=true")
    with running(tmp_path, *flags) as running_server:
        client = HttpsClient(running_server.kubeconfig)
        version = client.call("GET", "/version").body
        assert (version["minor"], version["emulationMinor"], version["minCompatibilityMinor"]) == ("37", "36", "35")
        info = 'version_info{binary="1.37.1",component="kube",emulation="1.36",min_compat="1.35"} 1\n'
        assert info in client.call("GET", "/metrics").body
        assert "\nBinary version: 1.37.1\nEmulation version: 1.36\n" in client.call("GET", "/statusz").body
        served = {
            version["groupVersion"]
            for group in client.call("GET", "/apis").body["groups"]
            for version in group["versions"]
        }
        assert {"networking.k8s.io/v1beta1", "storage.k8s.io/v1beta1", "storagemigration.k8s.io/v1beta1"} <= served
        assert "storagemigration.k8s.io/v1" not in served
        cidr = client.call("GET", "/apis/networking.k8s.io/v1beta1/servicecidrs/kubernetes")
        assert cidr.body["apiVersion"] == "networking.k8s.io/v1beta1"
        assert cidr.warnings == [
            '299 - "networking.k8s.io/v1beta1 ServiceCIDR is deprecated in v1.34+, unavailable in v1.37+"'
        ]
        listed = client.call("GET", "/apis/resource.k8s.io/v1").body["resources"]
        assert "devicetaintrules" not in {resource["name"] for resource in listed}
        assert client.call("GET", "/readyz").status == 200


def test_a_release_that_cannot_be_emulated_prevents_the_start(tmp_path: Path) -> None:
    assert "emulation version 1.30 is not between [1.34, 1.37.0]" in start_error(tmp_path, "--emulated-version=1.30")


def test_four_services_serve_enabled_versions(tmp_path: Path) -> None:
    with running_services(tmp_path, **dict.fromkeys(NAMES, (FLAGS,))) as services:
        client = HttpsClient(services.kubeconfig)
        groups_served = {group["name"]: group for group in client.call("GET", "/apis").body["groups"]}
        versions = [version["version"] for version in groups_served["resource.k8s.io"]["versions"]]
        assert versions == ["v1", "v1beta2", "v1beta1", "v1alpha3"]
        listed = client.call("GET", "/apis/resource.k8s.io/v1beta1/resourceslices").body
        assert listed["apiVersion"] == "resource.k8s.io/v1beta1"
        assert client.call("GET", "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions").status == 200
        assert "apis/resource.k8s.io/v1beta1" in client.call("GET", "/openapi/v3").body["paths"]


def test_removed_versions_are_served_for_one_more_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flag = "/apis/networking.k8s.io/v1beta1/servicecidrs", "--runtime-config=networking.k8s.io/v1beta1=true"
    monkeypatch.setenv("KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE", "true")
    with running(tmp_path / "served", flag) as server:
        client = HttpsClient(server.kubeconfig)
        reply = client.call("GET", path)
        assert (reply.status, reply.body["apiVersion"]) == (200, "networking.k8s.io/v1beta1")
        assert [item["metadata"]["name"] for item in reply.body["items"]] == ["kubernetes"]
        text = "networking.k8s.io/v1beta1 ServiceCIDR is deprecated in v1.34+, unavailable in v1.37+"
        assert [warning.split('"')[1] for warning in reply.warnings] == [text]
        counted = 'apiserver_requested_deprecated_apis{group="networking.k8s.io",removed_release="1.37",'
        assert counted in client.call("GET", "/metrics").body
    monkeypatch.setenv("KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE", "maybe")
    assert start_error(tmp_path / "invalid", flag).endswith('strconv.ParseBool: parsing "maybe": invalid syntax')


@pytest.mark.parametrize(("emulated", "version"), [("1.37", "v1"), ("1.36", "v1beta1"), ("1.35", "v1beta1")])
def test_an_emulated_release_stores_what_the_release_before_it_can_read(
    tmp_path: Path, emulated: str, version: str
) -> None:
    group = "admissionregistration.k8s.io"
    served = "v1" if emulated != "1.35" else "v1beta1"
    flags = (f"--emulated-version={emulated}", f"--runtime-config={group}/v1beta1=true")
    path = f"/apis/{group}/{served}/mutatingadmissionpolicybindings"
    with running(tmp_path, *flags) as server:
        client = HttpsClient(server.kubeconfig)
        made = client.call("POST", path, {"metadata": {"name": "b"}, "spec": {"policyName": "p"}})
        assert (made.status, made.body["apiVersion"]) == (201, f"{group}/{served}")
        assert stored(tmp_path, "mutatingadmissionpolicybindings/b")["apiVersion"] == f"{group}/{version}"
        assert client.call("GET", f"{path}/b").body["apiVersion"] == f"{group}/{served}"
        resources = client.call("GET", f"/apis/{group}/{served}").body["resources"]
        hashed = next(r["storageVersionHash"] for r in resources if r["name"] == "mutatingadmissionpolicybindings")
        text = f"{group}/{version}/MutatingAdmissionPolicyBinding"
        assert hashed == base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()
