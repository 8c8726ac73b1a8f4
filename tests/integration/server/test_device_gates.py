"""Feature gates of devices: fields of disabled gates are dropped, and those of enabled ones validated.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.etcd import running_etcd
from support.forms import ETCD, FORMS, SQLITE, STOCK, feature_gates, serving, serving_over
from support.https_client import MERGE, HttpsClient, Reply, causes
from tetrapod.machinery.gvk import Object

DISABLED: Final = (
    "--emulated-version=1.35",
    "--feature-gates=AllBeta=false,DRAAdminAccess=false,DRAPrioritizedList=false,DRAResourceClaimDeviceStatus=false",
)
ENABLED_GATES: Final = (
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRAOptionalNodeOperations",
    "DRAPartitionableDevicesType",
    "DRAResourcePoolStatus",
)
ENABLED: Final = (
    feature_gates(ENABLED_GATES, enabled=True),
    "--runtime-config=resource.k8s.io/v1alpha3=true",
)
GROUP: Final = "/apis/resource.k8s.io/v1"
SLICES: Final = f"{GROUP}/resourceslices"
CLASSES: Final = f"{GROUP}/deviceclasses"
CLAIMS: Final = f"{GROUP}/namespaces/default/resourceclaims"
TEMPLATES: Final = f"{GROUP}/namespaces/default/resourceclaimtemplates"
POOL_REQUESTS: Final = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"
ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
LABEL: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
GO_VALUES: Final = [f"{kind}Value{plural}" for plural in ("", "s") for kind in ("Int", "Bool", "String", "Version")]
NESTED: Final = "".join(f"device.attributes['a'].b.all({name}, " for name in "xyz")
DRIVER: Final = "a.example.com"
UUID: Final = "123e4567-e89b-12d3-a456-426614174000"
POLICY: Final = {"default": "1", "validRange": {"min": "1"}}
TAINT: Final = {"key": "a", "effect": "NoSchedule"}
COUNTERS: Final = [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]
DEVICE: Final[Object] = {
    "name": "d",
    "attributes": {"a": {"string": "x"}},
    "capacity": {"c": {"value": "10", "requestPolicy": POLICY}},
    "allowMultipleAllocations": True,
    "taints": [{**TAINT, "timeAdded": "2026-01-01T00:00:00Z"}],
    "consumesCounters": COUNTERS,
    "bindsToNode": True,
    "bindingConditions": ["b"],
    "bindingFailureConditions": ["f"],
}
BARE_DEVICE: Final = {"name": "d", "attributes": {"a": {"string": "x"}}, "capacity": {"c": {"value": "10"}}}
EXACTLY: Final = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
REQUESTS: Final[list[Object]] = [
    {
        "name": "r",
        "exactly": {
            **EXACTLY,
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "capacity": {"requests": {"c": "1"}},
        },
    },
]
CLAIM: Final = {"devices": {"requests": REQUESTS, "constraints": [{"matchAttribute": "a/b"}]}}
BARE_CLAIM: Final = {
    "devices": {"requests": [{"name": "r", "exactly": EXACTLY}], "constraints": [{"matchAttribute": "a/b"}]}
}


def named(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


def slice_spec(device: Object, **fields: Any) -> Object:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"driver": DRIVER, "pool": pool, "nodeName": "n", "devices": [device], **fields}


def posted(client: HttpsClient, path: str, name: str, spec: Object) -> Object:
    reply = client.call("POST", path, named(name, spec))
    assert reply.status == 201, reply
    created: Object = reply.body["spec"]
    return created


def result(**fields: Any) -> Object:
    return {"request": "r", "driver": DRIVER, "pool": "p", "device": "d", **fields}


def with_status(client: HttpsClient, name: str, **status: Any) -> Reply:
    """Set the status of a claim, and return the reply."""
    return client.call("PATCH", f"{CLAIMS}/{name}/status", {"status": status}, MERGE)


@pytest.fixture(scope="module", params=FORMS)
def disabled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("disabled"), *DISABLED) as client:
        yield client


@pytest.fixture(scope="module", params=FORMS)
def enabled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("enabled"), *ENABLED) as client:
        yield client


@pytest.fixture(scope="module", params=FORMS)
def default(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("default")) as client:
        yield client


def test_slices_lose_the_fields_of_disabled_gates(disabled: HttpsClient) -> None:
    created = posted(disabled, SLICES, "full", slice_spec(DEVICE, skipNodeOperations=["*"]))
    assert created == slice_spec(BARE_DEVICE)
    shared = slice_spec(DEVICE, sharedCounters=[{"name": "s", "counters": {"c": {"value": "1"}}}])
    assert posted(disabled, SLICES, "shared", {**shared, "devices": None}) == {
        key: value for key, value in slice_spec(DEVICE).items() if key != "devices"
    }


def test_device_nodes_are_dropped_with_the_gate_of_partitions(disabled: HttpsClient) -> None:
    spec = slice_spec({**BARE_DEVICE, "allNodes": True}, perDeviceNodeSelection=True, nodeName=None)
    assert causes(disabled.call("POST", SLICES, named("nodes", spec))) == [
        "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is "
        "required"
    ]


def test_a_dropped_field_of_a_slice_begins_a_generation(disabled: HttpsClient) -> None:
    posted(disabled, SLICES, "generation", slice_spec(BARE_DEVICE))
    reply = disabled.call("PATCH", f"{SLICES}/generation", {"spec": {"devices": [DEVICE]}}, MERGE)
    assert (reply.body["metadata"]["generation"], reply.body["spec"]["devices"]) == (2, [BARE_DEVICE])


def test_claims_and_templates_lose_the_fields_of_disabled_gates(disabled: HttpsClient) -> None:
    exactly = {**REQUESTS[0]["exactly"], "adminAccess": True}
    claim = {**CLAIM, "devices": {**CLAIM["devices"], "requests": [{"name": "r", "exactly": exactly}]}}
    assert posted(disabled, CLAIMS, "full", claim) == BARE_CLAIM
    assert posted(disabled, TEMPLATES, "full", {"spec": claim}) == {"metadata": {}, "spec": BARE_CLAIM}


def test_without_alternatives_a_request_is_incomplete(disabled: HttpsClient) -> None:
    requests = [{"name": "r", "firstAvailable": [{"name": "s", **EXACTLY}]}]
    reply = disabled.call("POST", CLAIMS, named("alternatives", {"devices": {"requests": requests}}))
    assert causes(reply) == [
        "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"
    ]


def test_without_distinct_attributes_a_constraint_is_incomplete(disabled: HttpsClient) -> None:
    devices = {"requests": REQUESTS, "constraints": [{"distinctAttribute": "a/b"}]}
    reply = disabled.call("POST", CLAIMS, named("distinct", {"devices": devices}))
    assert causes(reply) == ["spec.devices.constraints[0].matchAttribute: Required value"]


def test_classes_lose_the_name_of_their_extended_resource(disabled: HttpsClient) -> None:
    created = disabled.call("POST", CLASSES, named("c", {"extendedResourceName": "example.com/gpu"}))
    assert (created.status, created.body["spec"]) == (201, {})


def test_selectors_have_no_field_of_a_disabled_gate(disabled: HttpsClient) -> None:
    selectors = [{"cel": {"expression": "device.allowMultipleAllocations"}}]
    found = causes(disabled.call("POST", CLASSES, named("s", {"selectors": selectors})))
    assert len(found) == 1
    assert "undefined field 'allowMultipleAllocations'" in found[0]


def test_claim_statuses_lose_the_fields_of_disabled_gates(disabled: HttpsClient) -> None:
    posted(disabled, CLAIMS, "status", BARE_CLAIM)
    full = result(
        adminAccess=True,
        shareID=UUID,
        consumedCapacity={"c": "1"},
        bindingConditions=["b"],
        bindingFailureConditions=["f"],
        skipNodeOperations=["*"],
    )
    devices = [{"driver": DRIVER, "pool": "p", "device": "d", "data": {"a": 1}}]
    updated = with_status(disabled, "status", allocation={"devices": {"results": [full]}}, devices=devices)
    assert (updated.status, updated.body["status"]) == (200, {"allocation": {"devices": {"results": [result()]}}})


def test_roles_lose_the_rules_of_disabled_gates(disabled: HttpsClient) -> None:
    assert disabled.call("GET", f"{ROLES}/system:controller:device-taint-eviction-controller").status == 404
    rules = disabled.call("GET", f"{ROLES}/system:kube-scheduler").body["rules"]
    found = [rule["resources"] for rule in rules if rule["apiGroups"] == ["resource.k8s.io"]]
    assert found == [["deviceclasses"], ["resourceclaims"], ["resourceclaims/status"], ["resourceslices"]]


@pytest.mark.parametrize("form", [ETCD, STOCK])
def test_stored_fields_of_disabled_gates_are_kept(form: str, tmp_path: Path) -> None:
    labelled = {"metadata": {"labels": {"a": "b"}}}
    first, second = ((*flags, "--storage-media-type=application/json") for flags in (("--v=0",), DISABLED))
    with running_etcd(tmp_path / "etcd") as etcd:
        with serving_over(etcd, form, tmp_path / "first", *first) as client:
            posted(client, SLICES, "full", slice_spec(DEVICE))
            posted(client, CLAIMS, "full", CLAIM)
        with serving_over(etcd, form, tmp_path / "second", *second) as client:
            kept = client.call("PATCH", f"{SLICES}/full", labelled, MERGE)
            assert (kept.status, kept.body["spec"]) == (200, slice_spec(DEVICE))
            allocation = {"devices": {"results": [result(shareID=UUID, adminAccess=True)]}}
            reply = with_status(client, "full", allocation=allocation)
            assert reply.body["status"]["allocation"]["devices"]["results"] == [result(shareID=UUID)]


def rejected(client: HttpsClient, path: str, spec: Object) -> list[str]:
    return causes(client.call("POST", path, named("invalid", spec)))


def test_enabled_fields_are_stored(enabled: HttpsClient) -> None:
    consumed = [{**COUNTERS[0], "compatibilityGroups": ["a", "b"]}]
    device = {**DEVICE, "attributes": {"a": {"string": "x"}, "l": {"ints": [1, 2]}}, "consumesCounters": consumed}
    spec = slice_spec(device, skipNodeOperations=["*"], partitionTypeAttribute=f"{DRIVER}/a")
    assert posted(enabled, SLICES, "full", spec) == spec
    request = {"name": "r", "exactly": {**EXACTLY, "derivedAttributes": derived("a/b")}}
    claim = {"devices": {"requests": [request], "constraints": [{"matchAttribute": "a/b"}]}}
    assert posted(enabled, CLAIMS, "derived", claim) == claim
    results = [result(skipNodeOperations=["*"])]
    updated = with_status(enabled, "derived", allocation={"devices": {"results": results}})
    assert updated.body["status"] == {"allocation": {"devices": {"results": results}}}


def test_compatibility_groups_are_validated(enabled: HttpsClient) -> None:
    path = "spec.devices[0].consumesCounters[0].compatibilityGroups"

    def found(*groups: str) -> list[str]:
        device = {**DEVICE, "consumesCounters": [{**COUNTERS[0], "compatibilityGroups": groups}]}
        return rejected(enabled, SLICES, slice_spec(device))

    assert found("a", "b", "c") == [f"{path}: Too many: 3: must have at most 2 items"]
    assert found("a", "a") == [f'{path}[1]: Duplicate value: "a"']
    assert found("A") == [f'{path}[0]: Invalid value: "A": {LABEL}']


def test_skipped_operations_are_validated(enabled: HttpsClient) -> None:
    path = "spec.skipNodeOperations"
    assert rejected(
        enabled, SLICES, slice_spec(BARE_DEVICE, skipNodeOperations=["NodePrepareResources", "x", "x"])
    ) == [
        f'{path}: Invalid value: ["NodePrepareResources","x","x"]: NodePrepareResources cannot be skipped unless '
        "NodeUnprepareResources is also skipped",
        f'{path}[2]: Duplicate value: "x"',
        *(
            f'{path}[{i}]: Unsupported value: "x": supported values: "*", "NodePrepareResources", '
            '"NodeUnprepareResources"'
            for i in (1, 2)
        ),
    ]


def test_the_type_of_partitions_is_an_attribute_of_each_of_them(enabled: HttpsClient) -> None:
    def found(name: str, **attributes: Object) -> list[str]:
        device = {"name": "d", "attributes": attributes, "consumesCounters": COUNTERS}
        return rejected(enabled, SLICES, slice_spec(device, partitionTypeAttribute=name))

    path = f"spec.devices[0].attributes[{DRIVER}/t]"
    assert rejected(enabled, SLICES, slice_spec(BARE_DEVICE, partitionTypeAttribute=f"{DRIVER}/a")) == [
        f'spec.partitionTypeAttribute: Invalid value: "{DRIVER}/a": may only be set on a slice which declares devices '
        "that consume counters"
    ]
    assert found("t", t={"string": "x"}) == [
        'spec.partitionTypeAttribute: Invalid value: "t": a fully qualified name must be a domain and a name separated '
        "by a slash"
    ]
    assert found(f"{DRIVER}/t", o={"string": "x"}) == [
        f"{path}: Required value: device consumes counters and `partitionTypeAttribute` names this attribute, so it "
        "must be set"
    ]
    numeric = dict.fromkeys(GO_VALUES) | {"IntValue": 1}
    assert found(f"{DRIVER}/t", t={"int": 1}) == [
        f"{path}: Invalid value: {json.dumps(numeric, separators=(',', ':'))}: must be a string value because "
        "`partitionTypeAttribute` names this attribute"
    ]


def test_pool_status_requests_name_the_type_of_partitions(enabled: HttpsClient) -> None:
    name = "spec.defaultPartitionTypeAttribute"
    spec = {"driver": DRIVER, "defaultPartitionTypeAttribute": "t"}
    assert rejected(enabled, POOL_REQUESTS, spec) == [
        f'{name}: Invalid value: "t": a fully qualified name must be a domain and a name separated by a slash'
    ]
    created = posted(enabled, POOL_REQUESTS, "r", {**spec, "defaultPartitionTypeAttribute": "a/t"})
    assert created["defaultPartitionTypeAttribute"] == "a/t"
    assert enabled.call("GET", f"{ROLES}/system:controller:resourcepoolstatusrequest-controller").status == 200


def with_policy(**policy: Any) -> Object:
    return slice_spec({**DEVICE, "capacity": {"c": {"value": "10", "requestPolicy": policy}}})


def test_policies_may_have_fractions(enabled: HttpsClient) -> None:
    path = "spec.devices[0].capacity[c].requestPolicy"
    fine = {"min": "500m", "step": "250m", "max": "1"}
    assert posted(enabled, SLICES, "fine", with_policy(default="750m", validRange=fine))
    assert rejected(enabled, SLICES, with_policy(default="800m", validRange=fine)) == [
        f'{path}.validRange.step: Invalid value: "800m": value is not a multiple of a given step (250m) from (500m)'
    ]
    assert rejected(enabled, SLICES, with_policy(default="1u", validRange={"min": "0", "step": "1"})) == [
        f'{path}.validRange.default: Invalid value: "1u": value cannot be represented as a milli value'
    ]
    assert posted(enabled, SLICES, "values", with_policy(default="1200m", validValues=["1200m", "1500m"]))
    assert rejected(enabled, SLICES, with_policy(default="1200m", validValues=["1200m", "1200m"])) == [
        f'{path}.validValues[1]: Duplicate value: "1.200"'
    ]


def test_without_the_gate_amounts_are_rounded_up(default: HttpsClient) -> None:
    path = "spec.devices[0].capacity[c].requestPolicy"
    ranged = {"min": "500m", "step": "1500m", "max": "3"}
    assert posted(default, SLICES, "rounded", with_policy(default="2500m", validRange=ranged))
    values = with_policy(default="1200m", validValues=["1200m", "1500m"])
    assert rejected(default, SLICES, values) == [f'{path}.validValues[1]: Duplicate value: "2"']


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_the_gate_is_enabled_if_all_components_are_of_this_release(form: str, tmp_path: Path) -> None:
    with serving(form, tmp_path, "--min-compatibility-version=1.37") as client:
        posted(client, SLICES, "values", with_policy(default="1200m", validValues=["1200m", "1500m"]))
        metrics = str(client.call("GET", "/metrics").body)
        assert 'kubernetes_feature_enabled{name="DRAFractionalCapacityRange",stage="BETA"} 1' in metrics


def derived(*names: str, expression: str = "device.driver") -> list[Object]:
    return [{"name": name, "expression": expression} for name in names]


def derived_claim(attributes: list[Object], *requests: str) -> Object:
    request = {"name": "r", "firstAvailable": [{"name": "s", **EXACTLY, "derivedAttributes": attributes}]}
    constraint = {"matchAttribute": "a/b", **({"requests": requests} if requests else {})}
    return {"devices": {"requests": [request], "constraints": [constraint]}}


def test_derived_attributes_are_used_by_constraints(enabled: HttpsClient) -> None:
    path = "spec.devices.requests[0].firstAvailable[0].derivedAttributes"
    for i, requests in enumerate(((), ("r",), ("r/s",))):
        assert posted(enabled, CLAIMS, f"used-{i}", derived_claim(derived("a/b"), *requests))
    unused = "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"
    assert rejected(enabled, CLAIMS, derived_claim(derived("a/c"))) == [
        f'{path}[0].name: Invalid value: "a/c": {unused}'
    ]
    assert rejected(enabled, CLAIMS, derived_claim([{"name": "", "expression": ""}, *derived("a/b", "a/b")])) == [
        f'{path}[2]: Duplicate value: "a/b"',
        f"{path}[0].name: Required value",
        f"{path}[0].expression: Required value",
    ]
    many = rejected(enabled, CLAIMS, derived_claim(derived(*(["a/b"] * 33))))
    assert many[-1] == f"{path}: Too many: 33: must have at most 32 items"


@pytest.mark.parametrize(
    "expression",
    [
        "1",
        "true",
        "'a'",
        "semver('1.2.3')",
        "[1, 2]",
        "device.attributes['a'].b",
        "device.attributes['a'].b.exists(x, x > 1)",
    ],
)
def test_a_derived_attribute_is_a_scalar_or_a_list(enabled: HttpsClient, expression: str) -> None:
    claim = named("typed", derived_claim(derived("a/b", expression=expression)))
    reply = enabled.call("POST", f"{CLAIMS}?dryRun=All", claim)
    assert reply.status == 201, reply


@pytest.mark.parametrize(
    ("expression", "shown"),
    [("{'a': 1}", "map(string, int)"), ("[[1]]", "list(list(int))"), ("1.5", "double")],
)
def test_a_derived_attribute_of_another_type_is_rejected(enabled: HttpsClient, expression: str, shown: str) -> None:
    assert rejected(enabled, CLAIMS, derived_claim(derived("a/b", expression=expression))) == [
        "spec.devices.requests[0].firstAvailable[0].derivedAttributes[0].expression: Invalid value: "
        f'"{expression}": must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these '
        f"scalars, not {shown}"
    ]


def test_derived_attributes_share_a_cost_limit(enabled: HttpsClient) -> None:
    costly = "device.attributes.all(d, device.attributes[d].all(n, device.attributes['a'].b.all(x, x == n)))"
    attributes = derived("a/b", "a/c", expression=costly)
    claim = derived_claim(attributes[:1])
    assert posted(enabled, CLAIMS, "costly", claim)
    claim = derived_claim(attributes)
    claim["devices"]["constraints"].append({"matchAttribute": "a/c"})
    assert rejected(enabled, CLAIMS, claim) == [
        "spec.devices: Forbidden: too complex, total cost of derived attribute CEL expressions in the claim exceeds "
        "cost limit"
    ]


@pytest.mark.parametrize(
    ("expression", "status"),
    [
        ("device.attributes['a'].b.includes('x')", 201),
        ("[1, 2].includes(1)", 201),
        ("'a'.includes('a')", 201),
        ("device.attributes['a'].b", 201),
        ("device.attributes['a'].b.exists(x, x == 1)", 201),
        ("device.attributes['a'].b.all(x, device.attributes['a'].c.all(y, device.attributes['a'].d.includes(y)))", 201),
        (f"{NESTED}device.attributes['a'].d.includes(z))))", 422),
        ("includes([1], 1)", 422),
        ("device.driver", 422),
    ],
)
def test_selectors_may_use_lists(enabled: HttpsClient, expression: str, status: int) -> None:
    selectors = named("s", {"selectors": [{"cel": {"expression": expression}}]})
    reply = enabled.call("POST", f"{CLASSES}?dryRun=All", selectors)
    assert reply.status == status, reply


def test_without_the_gate_includes_is_no_function(disabled: HttpsClient) -> None:
    expression = "device.attributes['a'].b.includes('x')"
    found = rejected(disabled, CLASSES, {"selectors": [{"cel": {"expression": expression}}]})
    assert len(found) == 1
    assert "undeclared reference to 'includes'" in found[0]
