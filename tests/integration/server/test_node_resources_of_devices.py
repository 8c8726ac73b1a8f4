"""Resources of nodes that devices provide or use, behind the gate DRANodeAllocatableResources.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.etcd import running_etcd
from support.forms import ETCD, FORMS, SQLITE, STOCK, feature_gates, serving, serving_over
from support.https_client import MERGE, HttpsClient, Reply, causes
from support.service_accounts import ensure_service_account
from tetrapod.machinery.gvk import Object

GATE: Final = "DRANodeAllocatableResources"
BETA: Final = "--runtime-config=resource.k8s.io/v1beta1=true"
SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
PODS: Final = "/api/v1/namespaces/default/pods"
NODES: Final = "/api/v1/nodes"
STATUSES: Final = "nodeAllocatableResourceClaimStatuses"
RESOURCES: Final[Object] = {
    "cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "2"}},
    "memory": {"overhead": {"perPod": "1Gi", "perContainer": "0"}},
    "hugepages-2Mi": {"mapping": {"deviceMultiplier": "4Mi"}, "overhead": {"perContainer": "2Mi"}},
}


def slice_of(name: str, *resources: Object, node: str | None = "able", **fields: Any) -> Object:
    devices = [
        {"name": f"d{i}", "capacity": {"cores": {"value": "8"}}, "nodeAllocatableResources": given}
        for i, given in enumerate(resources)
    ]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "a.example.com", "pool": pool, "nodeName": node, "devices": devices, **fields}
    return {"metadata": {"name": name}, "spec": {key: value for key, value in spec.items() if value is not None}}


def add_node(client: HttpsClient, name: str, *features: str, **labels: str) -> None:
    created = client.call("POST", NODES, {"metadata": {"name": name, "labels": labels}})
    assert created.status == 201, created.message
    capacity = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    status = {"capacity": capacity, "allocatable": capacity, "declaredFeatures": sorted(features)}
    reply = client.call("PATCH", f"{NODES}/{name}/status", {"status": status}, MERGE)
    assert reply.status == 200, reply.message


def posted(client: HttpsClient, body: Object) -> Reply:
    """Post a slice until its nodes are known, which the caches of kube-apiserver may lack at first."""
    return client.until(lambda reply: "not found" not in reply.message, "POST", SLICES, body)


@pytest.fixture(scope="module", params=FORMS)
def enabled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    directory = tmp_path_factory.mktemp("enabled")
    with serving(request.param, directory, feature_gates([GATE], enabled=True), BETA) as client:
        ensure_service_account(client)
        add_node(client, "able", GATE, "InPlacePodLevelResourcesVerticalScaling", zone="a", number="5")
        known = posted(client, slice_of("first", RESOURCES))
        assert known.status == 201, known.message
        yield client


def rejected(client: HttpsClient, resource: str, **given: Any) -> list[str]:
    return causes(client.call("POST", SLICES, slice_of("invalid", {resource: given})))


def test_devices_keep_the_resources_of_nodes(enabled: HttpsClient) -> None:
    body = slice_of("kept", RESOURCES)
    created = enabled.call("POST", SLICES, body)
    assert (created.status, created.body["spec"]) == (201, body["spec"])
    old = enabled.call("GET", "/apis/resource.k8s.io/v1beta1/resourceslices/kept")
    assert old.body["spec"]["devices"][0]["basic"]["nodeAllocatableResources"] == RESOURCES
    updated = enabled.call("PUT", "/apis/resource.k8s.io/v1beta1/resourceslices/kept", old.body)
    assert updated.body["spec"]["devices"][0]["basic"]["nodeAllocatableResources"] == RESOURCES


def test_the_resources_of_nodes_are_validated(enabled: HttpsClient) -> None:
    path = "spec.devices[0].nodeAllocatableResources"
    one, other = "`capacityKey`", "`deviceMultiplier`"
    assert rejected(enabled, "example.com/gpu", overhead={"perPod": "1"}) == [
        f'{path}[example.com/gpu]: Invalid value: "example.com/gpu": must be a node allocatable resource name'
    ]
    assert rejected(enabled, "cpu") == [f"{path}[cpu]: Required value: at least one of mapping or overhead must be set"]
    assert rejected(enabled, "cpu", mapping={}, overhead={}) == [
        f'{path}[cpu].overhead: Invalid value: "": at least one of perPod or perContainer must be set',
        f'{path}[cpu].mapping: Invalid value: "": must specify one of: {one}, {other}',
    ]
    both = {"capacityKey": "other", "capacityMultiplier": "0", "deviceMultiplier": "-1"}
    assert rejected(enabled, "cpu", mapping=both) == [
        f'{path}[cpu].mapping.capacityKey: Not found: "other"',
        f'{path}[cpu].mapping.capacityMultiplier: Invalid value: "0": must be positive',
        f'{path}[cpu].mapping.deviceMultiplier: Invalid value: "-1": must be positive',
        f'{path}[cpu].mapping: Invalid value: "{{capacityKey, deviceMultiplier}}": must specify exactly one of: '
        f"{one}, {other}",
    ]
    assert rejected(enabled, "cpu", mapping={"capacityKey": ""}) == [
        f'{path}[cpu].mapping.capacityKey: Invalid value: "": capacityKey must not be an empty string',
        f"{path}[cpu].mapping.capacityMultiplier: Required value: "
        "capacityMultiplier is required when capacityKey is set",
    ]
    assert rejected(enabled, "cpu", mapping={"capacityMultiplier": "1", "deviceMultiplier": "1"}) == [
        f"{path}[cpu].mapping.capacityKey: Required value: capacityKey is required when capacityMultiplier is set"
    ]
    assert rejected(enabled, "cpu", overhead={"perPod": "-1", "perContainer": "-1k"}) == [
        f'{path}[cpu].overhead.perPod: Invalid value: "-1": must be non-negative',
        f'{path}[cpu].overhead.perContainer: Invalid value: "-1k": must be non-negative',
    ]


def forbidden(client: HttpsClient, body: Object, path: str = SLICES) -> str:
    reply = client.call("POST", path, body)
    assert reply.status == 403, reply
    prefix = f'resourceslices.resource.k8s.io "{body["metadata"]["name"]}" is forbidden: '
    assert reply.message.startswith(prefix)
    return reply.message.removeprefix(prefix)


def selecting(*requirements: Object, kind: str = "matchExpressions") -> Object:
    return {"nodeSelectorTerms": [{kind: list(requirements)}]}


def requires(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, **({"values": values} if values else {})}


def test_the_nodes_of_a_device_declare_the_feature(enabled: HttpsClient) -> None:
    lacks = f'node "unable" does not support {GATE} feature'
    everywhere = slice_of("everywhere", RESOURCES, node=None, allNodes=True)
    assert enabled.call("POST", SLICES, everywhere).status == 201
    add_node(enabled, "unable", "InPlacePodLevelResourcesVerticalScaling", zone="b", number="7")
    body = slice_of("unable", RESOURCES, node="unable")
    known = posted(enabled, body)
    assert known.message == f'resourceslices.resource.k8s.io "unable" is forbidden: {lacks}'
    assert (
        forbidden(enabled, slice_of("missing", RESOURCES, node="missing")) == 'node "missing" not found for device "d0"'
    )
    assert forbidden(enabled, slice_of("all", RESOURCES, node=None, allNodes=True)) == lacks
    old = slice_of(
        "old",
        node="unable",
        devices=[{"name": "d0", "basic": {"nodeAllocatableResources": {"cpu": {"overhead": {"perPod": "1"}}}}}],
    )
    assert forbidden(enabled, old, "/apis/resource.k8s.io/v1beta1/resourceslices") == lacks
    assert enabled.call("PUT", f"{SLICES}/everywhere", everywhere).status == 403
    assert enabled.call("POST", SLICES, slice_of("bare", node="unable", devices=[{"name": "d"}])).status == 201


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (selecting(requires("zone", "In", "a", "c")), False),
        (selecting(requires("zone", "In", "b")), True),
        (selecting(requires("zone", "NotIn", "b")), False),
        (selecting(requires("zone", "Exists")), True),
        (selecting(requires("other", "DoesNotExist")), True),
        (selecting(requires("number", "Gt", "6")), True),
        (selecting(requires("number", "Lt", "6")), False),
        (selecting(requires("zone", "Exists"), requires("number", "Lt", "6")), False),
        (selecting(requires("metadata.name", "In", "able"), kind="matchFields"), False),
        (selecting(requires("metadata.name", "NotIn", "able"), kind="matchFields"), True),
        ({"nodeSelectorTerms": [{}]}, False),
    ],
)
def test_only_selected_nodes_declare_the_feature(enabled: HttpsClient, selector: Object, selected: bool) -> None:
    if enabled.call("GET", f"{NODES}/unable").status == 404:
        add_node(enabled, "unable", zone="b", number="7")
        posted(enabled, slice_of("waiting", RESOURCES, node="unable"))
    body = slice_of("selected", RESOURCES, node=None, nodeSelector=selector)
    by_slice = enabled.call("POST", f"{SLICES}?dryRun=All", body)
    body["spec"] |= {"perDeviceNodeSelection": True, "nodeSelector": None}
    body["spec"]["devices"] = [{**device, "nodeSelector": selector} for device in body["spec"]["devices"]]
    by_device = enabled.call("POST", f"{SLICES}?dryRun=All", body)
    expected = 403 if selected else 201
    assert (by_slice.status, by_device.status) == (expected, expected), (by_slice.message, by_device.message)


def test_a_selector_of_nodes_compares_with_a_number(enabled: HttpsClient) -> None:
    body = slice_of("selected", RESOURCES, node=None, nodeSelector=selecting(requires("number", "Gt", "x")))
    reply = enabled.call("POST", SLICES, body)
    assert (reply.status, reply.message) == (
        400,
        'failed to create node selector: nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "x": for '
        "'Gt', 'Lt' operators, the value must be an integer",
    )


def add_pod(client: HttpsClient, name: str, **spec: Any) -> None:
    claims = [{"name": "c", "resourceClaimName": "claim"}, {"name": "t", "resourceClaimTemplateName": "template"}]
    containers = [
        {"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
        {"name": "b", "image": "i"},
    ]
    body = {
        "metadata": {"name": name},
        "spec": {"nodeName": "able", "containers": containers, "resourceClaims": claims, **spec},
    }
    created = client.call("POST", PODS, body)
    assert created.status == 201, created.message


def with_claims(client: HttpsClient, name: str, *statuses: Object, **status: Any) -> Reply:
    return client.call("PATCH", f"{PODS}/{name}/status", {"status": {STATUSES: statuses, **status}}, MERGE)


def test_pods_keep_what_claims_give_them(enabled: HttpsClient) -> None:
    add_pod(enabled, "kept")
    given = {
        "resourceClaimName": "claim",
        "containers": ["a", "b"],
        "mapping": [{"name": "cpu", "quantity": "2"}],
        "overhead": [{"name": "memory", "perPod": "1Gi", "perContainer": "1Mi"}],
    }
    assert with_claims(enabled, "kept", given).body["status"][STATUSES] == [given]
    kept = enabled.call("GET", f"{PODS}/kept").body
    del kept["status"][STATUSES]
    assert enabled.call("PUT", f"{PODS}/kept/status", kept).body["status"][STATUSES] == [given]
    generated = {"resourceClaimName": "generated", "mapping": [{"name": "hugepages-2Mi", "quantity": "0"}]}
    claims = [{"name": "t", "resourceClaimName": "generated"}]
    assert with_claims(enabled, "kept", generated, resourceClaimStatuses=claims).body["status"][STATUSES] == [generated]
    assert STATUSES not in with_claims(enabled, "kept").body["status"]


def test_resources_of_claims_in_pod_statuses_are_validated(enabled: HttpsClient) -> None:
    add_pod(enabled, "invalid")
    path = f"status.{STATUSES}"

    def found(*statuses: Object) -> list[str]:
        return causes(with_claims(enabled, "invalid", *statuses))

    assert found({"resourceClaimName": "other"}) == [
        f'{path}[0].resourceClaimName: Invalid value: "other": no mapping found in pod reference'
    ]
    assert found({"mapping": [{"name": "x"}]}) == [
        f"{path}[0].resourceClaimName: Required value",
        f"{path}[0].mapping[0].quantity: Required value",
    ]
    mapped = [{"name": "ephemeral-storage", "quantity": "-1"}, {"quantity": "1"}]
    assert found({"resourceClaimName": "claim", "mapping": mapped}) == [
        f'{path}[0].mapping[0].name: Invalid value: "ephemeral-storage": must be a node allocatable resource name',
        f'{path}[0].mapping[0].quantity: Invalid value: "-1": must be non-negative',
        f'{path}[0].mapping[1].name: Invalid value: "": must be a node allocatable resource name',
        f"{path}[0].mapping[1].name: Required value",
    ]
    overhead = [{"name": "cpu"}, {"name": "memory", "perPod": "-1", "perContainer": "-2"}]
    assert found({"resourceClaimName": "claim", "overhead": overhead}) == [
        f'{path}[0].overhead[0]: Invalid value: "": at least one of perPod or perContainer must be set',
        f'{path}[0].overhead[1].perPod: Invalid value: "-1": must be non-negative',
        f'{path}[0].overhead[1].perContainer: Invalid value: "-2": must be non-negative',
    ]


def test_resources_of_claims_in_pod_statuses_are_unique(enabled: HttpsClient) -> None:
    add_pod(enabled, "unique")
    one = {
        "resourceClaimName": "claim",
        "containers": ["a", "b", "a"],
        "mapping": [{"name": "cpu", "quantity": "1"}, {"name": "cpu", "quantity": "2"}],
        "overhead": [{"name": "cpu", "perPod": "1"}, {"name": "cpu", "perContainer": "1"}],
    }
    path = f"status.{STATUSES}"
    assert causes(with_claims(enabled, "unique", one, {"resourceClaimName": "claim", "containers": ["a"]})) == [
        f'{path}[1]: Duplicate value: {{"resourceClaimName":"claim","containers":["a"]}}',
        f'{path}[0].containers[2]: Duplicate value: "a"',
        f'{path}[0].mapping[1]: Duplicate value: {{"name":"cpu","quantity":"2"}}',
        f'{path}[0].overhead[1]: Duplicate value: {{"name":"cpu","perContainer":"1"}}',
    ]


def resized(client: HttpsClient, name: str, **resources: Any) -> Reply:
    return client.call("PATCH", f"{PODS}/{name}/resize", {"spec": {"resources": resources}}, MERGE)


def test_pod_level_resources_cover_what_claims_give(enabled: HttpsClient) -> None:
    add_pod(enabled, "resized", resources={"requests": {"cpu": "6"}, "limits": {"cpu": "8"}})
    given = {
        "resourceClaimName": "claim",
        "containers": ["a", "b"],
        "mapping": [{"name": "cpu", "quantity": "1"}],
        "overhead": [{"name": "cpu", "perPod": "500m", "perContainer": "1"}],
    }
    assert with_claims(enabled, "resized", given).status == 200
    # The container requests 1, and its claim gives 1 + 0.5 + 2 * 1.
    assert resized(enabled, "resized", requests={"cpu": "4500m"}).status == 200
    requests, limits = {"cpu": "4499m"}, {"cpu": "8"}
    shown = '{"Limits":{"cpu":"8"},"Requests":{"cpu":"4499m"},"Claims":null}'
    assert causes(resized(enabled, "resized", requests=requests, limits=limits)) == [
        f"spec.resources: Invalid value: {shown}: pod level request for cpu is insufficient to cover the aggregated "
        "container and node-allocatable DRA requests"
    ]
    # The limit of the container is 2, and its claim gives 1 + 0.5 + 1.
    assert resized(enabled, "resized", requests=requests | {"cpu": "4500m"}, limits={"cpu": "4500m"}).status == 200
    add_pod(enabled, "limited", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "8"}})
    given["containers"] = ["a"]
    given["mapping"], given["overhead"] = [], [{"name": "cpu", "perPod": "0", "perContainer": "1"}]
    assert with_claims(enabled, "limited", given).status == 200
    assert causes(resized(enabled, "limited", requests={"cpu": "2"}, limits={"cpu": "2500m"})) == [
        'spec.resources: Invalid value: {"Limits":{"cpu":"2500m"},"Requests":{"cpu":"2"},"Claims":null}: pod level '
        "limit for cpu is insufficient to cover the limit and DRA overhead for container a"
    ]


def test_pod_level_limits_cover_the_huge_pages_of_claims(enabled: HttpsClient) -> None:
    amounts = {"cpu": "4", "hugepages-2Mi": "4Mi"}
    add_pod(enabled, "pages", resources={"requests": amounts, "limits": amounts})
    given = {"resourceClaimName": "claim", "overhead": [{"name": "hugepages-2Mi", "perPod": "6Mi"}]}
    assert with_claims(enabled, "pages", given).status == 200
    (error,) = causes(resized(enabled, "pages", requests={"cpu": "3"}))
    assert error.endswith(
        "pod level request for hugepages-2Mi is insufficient to cover the aggregated container and node-allocatable "
        "DRA requests"
    )


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_without_the_gate_the_resources_of_nodes_are_dropped(form: str, tmp_path: Path) -> None:
    with serving(form, tmp_path) as client:
        ensure_service_account(client)
        created = client.call("POST", SLICES, slice_of("dropped", RESOURCES, node="missing"))
        assert (created.status, created.body["spec"]["devices"]) == (
            201,
            [{"name": "d0", "capacity": {"cores": {"value": "8"}}}],
        )
        add_pod(client, "dropped")
        assert STATUSES not in with_claims(client, "dropped", {"resourceClaimName": "other"}).body["status"]


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_stored_resources_of_nodes_are_kept_without_the_gate(form: str, tmp_path: Path) -> None:
    given = {"resourceClaimName": "claim", "mapping": [{"name": "cpu", "quantity": "2"}]}
    storage = "--storage-media-type=application/json"
    with running_etcd(tmp_path / "etcd") as etcd:
        first = serving_over(etcd, form, tmp_path / "first", feature_gates([GATE], enabled=True), storage)
        with first as client:
            ensure_service_account(client)
            add_node(client, "able", GATE)
            body = slice_of("kept", RESOURCES)
            created = posted(client, body)
            assert created.status == 201, created.message
            add_pod(client, "kept")
            assert with_claims(client, "kept", given).status == 200
        with serving_over(etcd, form, tmp_path / "second", storage) as client:
            labelled = {"metadata": {"labels": {"a": "b"}}}
            kept = client.call("PATCH", f"{SLICES}/kept", labelled, MERGE)
            assert kept.body["spec"]["devices"][0]["nodeAllocatableResources"] == RESOURCES
            assert with_claims(client, "kept", given, message="m").body["status"][STATUSES] == [given]


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_new_nodes_lose_declared_features_where_the_release_has_none(form: str, tmp_path: Path) -> None:
    with serving(form, tmp_path, "--emulated-version=1.35") as client:
        created = client.call("POST", NODES, {"metadata": {"name": "n"}, "status": {"declaredFeatures": ["A"]}})
        assert (created.status, "declaredFeatures" in created.body["status"]) == (201, False)
        status = {"status": {"declaredFeatures": ["A"]}}
        updated = client.call("PATCH", f"{NODES}/n/status", status, MERGE)
        assert (updated.status, updated.body["status"]["declaredFeatures"]) == (200, ["A"])
