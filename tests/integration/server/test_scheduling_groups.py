"""Workloads, PodGroups and CompositePodGroups behind their feature gates, also of kube-apiserver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.forms import FORMS, SQLITE, feature_gates, serving
from support.https_client import MERGE, HttpsClient, Reply, causes
from support.service_accounts import ensure_service_account
from tetrapod.machinery.gvk import Object

GATES: Final = (
    "GenericWorkload",
    "CompositePodGroup",
    "PodGroupPreemptionPolicy",
    "TopologyAwareWorkloadScheduling",
    "DRAWorkloadResourceClaims",
)
VERSIONS: Final = "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"
BETA: Final = "/apis/scheduling.k8s.io/v1beta1/namespaces/default"
ALPHA: Final = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default"
PODS: Final = "/api/v1/namespaces/default/pods"
KINDS: Final = {"workloads": "Workload", "podgroups": "PodGroup", "compositepodgroups": "CompositePodGroup"}
BASIC: Final[Object] = {"basic": {}}
REFERENCE: Final = {"workloadName": "w", "templateName": "t"}
LABEL: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NO_CHILD: Final = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"


def flags(*gates: str) -> tuple[str, str]:
    return feature_gates(gates, enabled=True), VERSIONS


@pytest.fixture(scope="module", params=FORMS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("data"), *flags(*GATES)) as client:
        yield client


def body(resource: str, name: str, spec: Object, version: str = "v1beta1") -> Object:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": KINDS[resource],
        "metadata": {"name": name},
        "spec": spec,
    }


def create(client: HttpsClient, resource: str, name: str, spec: Object) -> Reply:
    if resource == "compositepodgroups":
        return client.call("POST", f"{ALPHA}/{resource}", body(resource, name, spec, "v1alpha3"))
    return client.call("POST", f"{BETA}/{resource}", body(resource, name, spec))


def template(name: str, **fields: Any) -> Object:
    return {"name": name, "schedulingPolicy": BASIC, **fields}


def templates(*listed: Object) -> Object:
    return {"podGroupTemplates": list(listed)}


def composites(*listed: Object) -> Object:
    return {"compositePodGroupTemplates": list(listed)}


def nested(depth: int) -> Object:
    child = templates(template("leaf")) if depth == 1 else composites(nested(depth - 1))
    return template(f"d{depth}", **child)


NEITHER: Final = 'spec: Invalid value: "": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`'
WORKLOADS: Final[list[tuple[Object, list[str]]]] = [
    ({}, [NEITHER]),
    (
        templates(template("a")) | composites(template("b", **templates(template("c")))),
        [
            'spec: Invalid value: "{podGroupTemplates, compositePodGroupTemplates}": must specify exactly one of: '
            "`podGroupTemplates`, `compositePodGroupTemplates`"
        ],
    ),
    (templates(template("A_x")), [f'spec.podGroupTemplates[0].name: Invalid value: "A_x": {LABEL}']),
    (
        templates({"name": "a"}),
        ['spec.podGroupTemplates[0].schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'],
    ),
    (
        templates(template("a", schedulingPolicy={"basic": {}, "gang": {"minCount": 1}})),
        [
            'spec.podGroupTemplates[0].schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: '
            "`basic`, `gang`"
        ],
    ),
    (
        templates(template("a", schedulingPolicy={"gang": {"minCount": -1}})),
        [
            "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal"
            " to 1"
        ],
    ),
    (
        templates(*(template(f"t{i}") for i in range(9))),
        ["spec.podGroupTemplates: Too many: 9: must have at most 8 items"],
    ),
    (
        templates(template("a"), template("b", priority=3)),
        ["spec: Invalid value: null: detected multiple priority configurations"],
    ),
    (
        templates(template("a", priority=2_000_000_000, preemptionPolicy="Foo")),
        [
            "spec.podGroupTemplates[0].priority: Invalid value: 2000000000: must be less than or equal to 1000000000",
            'spec.podGroupTemplates[0].preemptionPolicy: Unsupported value: "Foo": supported values: "Never",'
            ' "PreemptLowerPriority"',
        ],
    ),
    (
        templates(template("a", disruptionMode={}, schedulingConstraints={"topology": [{}, {}]})),
        [
            "spec.podGroupTemplates[0].schedulingConstraints.topology: Too many: 2: must have at most 1 item",
            'spec.podGroupTemplates[0].disruptionMode: Invalid value: "": must specify one of: `single`, `all`',
        ],
    ),
    (
        templates(template("a")) | {"controllerRef": {"apiGroup": "A_"}},
        [
            f'spec.controllerRef.apiGroup: Invalid value: "A_": {SUBDOMAIN}',
            "spec.controllerRef.kind: Required value",
            "spec.controllerRef.name: Required value",
        ],
    ),
    (composites(template("b")), [f'spec.compositePodGroupTemplates[0]: Invalid value: "b": {NO_CHILD}']),
    (
        composites(template("b", **templates(template("b")))),
        ['spec.compositePodGroupTemplates[0].podGroupTemplates[0].name: Duplicate value: "b"'],
    ),
    (
        composites(template("b", **templates(template("x", priority=1)))),
        [
            "spec: Invalid value: null: all priority and priorityClassName values must be identical, detected multiple"
            " values"
        ],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), WORKLOADS)
def test_an_invalid_workload_is_rejected_with_all_its_errors(
    client: HttpsClient, spec: Object, expected: list[str]
) -> None:
    assert causes(create(client, "workloads", "invalid", spec)) == expected


def test_composite_templates_may_be_nested_three_levels_deep(client: HttpsClient) -> None:
    assert create(client, "workloads", "three", composites(nested(3))).status == 201
    [error] = causes(create(client, "workloads", "four", composites(nested(4))))
    assert error.startswith('spec.compositePodGroupTemplates[0]: Invalid value: [{"Name":"d3",')
    assert error.endswith("]: maximum template hierarchy depth is 4")


def test_a_workload_is_served_in_both_versions(client: HttpsClient) -> None:
    spec = templates(template("a", schedulingPolicy={"gang": {"minCount": 3}}))
    assert create(client, "workloads", "both", spec).status == 201
    in_beta, in_alpha = (client.call("GET", f"{base}/workloads/both").body for base in (BETA, ALPHA))
    assert in_alpha == {**in_beta, "apiVersion": "scheduling.k8s.io/v1alpha3"}
    assert in_beta["spec"]["podGroupTemplates"][0]["schedulingConstraints"] is None  # upstream's type has no omitempty


CHANGES: Final[list[tuple[Object, list[str]]]] = [
    (templates(template("a", schedulingPolicy={"gang": {"minCount": 4}})), []),
    (
        templates(template("a")),
        [
            "spec.podGroupTemplates[0].schedulingPolicy.basic: Invalid value: null: field is immutable",
            "spec.podGroupTemplates[0].schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set",
        ],
    ),
    (
        templates(template("b", schedulingPolicy={"gang": {"minCount": 3}})),
        [
            "spec.podGroupTemplates[0]: Forbidden: item may not be added",
            "spec.podGroupTemplates: Forbidden: item may not be removed",
        ],
    ),
    (
        templates(template("a", schedulingPolicy={"gang": {"minCount": 3}}, disruptionMode={"all": {}}, priority=1)),
        [
            "spec.podGroupTemplates[0].disruptionMode: Invalid value: null: field is immutable",
            "spec.podGroupTemplates[0].priority: Invalid value: null: field is immutable",
        ],
    ),
]


def test_an_update_of_a_workload_changes_only_the_size_of_gangs(client: HttpsClient) -> None:
    spec = templates(template("a", schedulingPolicy={"gang": {"minCount": 3}}))
    assert create(client, "workloads", "changed", spec).status == 201
    for change, expected in CHANGES:
        reply = client.call("PATCH", f"{BETA}/workloads/changed", {"spec": change}, MERGE)
        assert (causes(reply) if expected else reply.status) == (expected or 200)


def test_a_pod_group_gets_defaults_its_priority_and_a_finalizer(client: HttpsClient) -> None:
    priority_class = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "seven"}}
    client.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {**priority_class, "value": 7})
    reply = create(client, "podgroups", "seven", {"schedulingPolicy": BASIC, "priorityClassName": "seven"})
    assert reply.status == 201
    assert reply.body["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    assert reply.body["spec"] == {
        "schedulingPolicy": BASIC,
        "disruptionMode": {"single": {}},
        "priorityClassName": "seven",
        "priority": 7,
        "preemptionPolicy": "PreemptLowerPriority",
    }


@pytest.mark.parametrize(
    ("resource", "words"), [("podgroups", "pod group"), ("compositepodgroups", "composite pod group")]
)
def test_a_group_with_another_priority_than_its_class_is_forbidden(
    client: HttpsClient, resource: str, words: str
) -> None:
    spec = {"schedulingPolicy": BASIC, "workloadRef": REFERENCE}
    assert [
        create(client, resource, "other", {**spec, **fields}).message
        for fields in ({"priority": 5}, {"priorityClassName": "none"}, {"preemptionPolicy": "Never"})
    ] == [
        f'{resource}.scheduling.k8s.io "other" is forbidden: priority set in the {words} (5) must match the priority '
        "computed (0) based on the priority class set in the spec",
        f'{resource}.scheduling.k8s.io "other" is forbidden: no PriorityClass with name none was found',
        f'{resource}.scheduling.k8s.io "other" is forbidden: the string value of PreemptionPolicy (Never) must not be '
        f"provided in {words} spec; priority admission controller computed PreemptLowerPriority from the given "
        "PriorityClass name",
    ]


def test_invalid_groups_are_rejected(client: HttpsClient) -> None:
    spec = {"schedulingPolicy": BASIC, "parentCompositePodGroupName": "p"}
    assert causes(create(client, "podgroups", "invalid", spec)) == [
        "spec.workloadRef: Required value: must be set when parentCompositePodGroupName is set"
    ]
    assert causes(create(client, "compositepodgroups", "invalid", spec)) == ["spec.workloadRef: Required value"]


def test_the_status_of_a_pod_group_is_validated_and_shown(client: HttpsClient) -> None:
    claims = [{"name": "c", "resourceClaimTemplateName": "x"}]
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "workloadRef": REFERENCE, "resourceClaims": claims}
    assert create(client, "podgroups", "shown", spec).status == 201
    path = f"{BETA}/podgroups/shown/status"
    reply = client.call("PATCH", path, {"status": {"resourceClaimStatuses": [{"name": "d"}]}}, MERGE)
    assert causes(reply) == [
        'status.resourceClaimStatuses[0].name: Invalid value: "d": must match the name of an entry in '
        "`spec.resourceClaims`"
    ]
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    assert client.call("PATCH", path, {"status": {"conditions": [condition]}}, MERGE).status == 200
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    [row] = client.with_headers(accept).call("GET", f"{BETA}/podgroups?fieldSelector=metadata.name=shown").body["rows"]
    assert row["cells"][:4] == ["shown", "Gang", "w", "Scheduled"]


def pod(name: str, **fields: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False, **fields},
    }


def test_the_group_of_a_pod_is_validated(client: HttpsClient) -> None:
    ensure_service_account(client)
    replies = [client.call("POST", PODS, pod("p", schedulingGroup=group)) for group in ({}, {"podGroupName": "A"})]
    assert [causes(reply) for reply in replies] == [
        ["spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`"],
        [f'spec.schedulingGroup.podGroupName: Invalid value: "A": {SUBDOMAIN}'],
    ]


def test_gated_fields_are_dropped_unless_the_stored_object_has_them(tmp_path: Any) -> None:
    spec = {
        "schedulingPolicy": BASIC,
        "preemptionPolicy": "PreemptLowerPriority",
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "resourceClaims": [{"name": "c", "resourceClaimName": "x"}],
    }
    with serving(SQLITE, tmp_path, *flags(*GATES)) as client:
        assert create(client, "podgroups", "full", spec).status == 201
    with serving(SQLITE, tmp_path, *flags("GenericWorkload")) as client:
        created = create(client, "podgroups", "bare", spec).body["spec"]
        assert created == {"schedulingPolicy": BASIC, "disruptionMode": {"single": {}}, "priority": 0}
        labelled = {"metadata": {"labels": {"a": "b"}}}
        kept = client.call("PATCH", f"{BETA}/podgroups/full", labelled, MERGE).body["spec"]
        assert kept == {**spec, "disruptionMode": {"single": {}}, "priority": 0}
        assert client.call("GET", f"{ALPHA}/compositepodgroups").status == 404


def test_without_the_gate_nothing_is_served_and_pods_have_no_group(tmp_path: Any) -> None:
    with serving(SQLITE, tmp_path, VERSIONS) as client:
        assert client.call("GET", f"{BETA}/podgroups").status == 404
        assert (
            "schedulingGroup"
            not in client.call("POST", PODS, pod("p", schedulingGroup={"podGroupName": "g"})).body["spec"]
        )


def test_a_deleted_pod_group_stays_until_its_pods_have_ended(tmp_path: Any) -> None:
    with serving(SQLITE, tmp_path, *flags("GenericWorkload")) as client:
        assert create(client, "podgroups", "g", {"schedulingPolicy": BASIC}).status == 201
        assert client.call("POST", PODS, pod("p", schedulingGroup={"podGroupName": "g"})).status == 201
        assert client.call("DELETE", f"{BETA}/podgroups/g").body["metadata"]["deletionTimestamp"]
        assert create(client, "podgroups", "unused", {"schedulingPolicy": BASIC}).status == 201
        assert client.call("DELETE", f"{BETA}/podgroups/unused").status == 200
        client.until(lambda reply: reply.status == 404, "GET", f"{BETA}/podgroups/unused")
        assert client.call("GET", f"{BETA}/podgroups/g").status == 200
        ended = {"status": {"phase": "Succeeded"}}
        assert client.call("PATCH", f"{PODS}/p/status", ended, MERGE).status == 200
        client.until(lambda reply: reply.status == 404, "GET", f"{BETA}/podgroups/g")


@pytest.mark.parametrize(
    ("role", "rules"),
    [
        ("system:aggregate-to-view", 2),
        ("system:aggregate-to-edit", 2),
        ("system:kube-scheduler", 4),
        ("system:controller:podgroup-protection-controller", 1),
    ],
)
def test_default_roles_cover_the_groups(client: HttpsClient, role: str, rules: int) -> None:
    found = client.call("GET", f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}").body["rules"]
    resources = {name for rule in found if rule["apiGroups"] == ["scheduling.k8s.io"] for name in rule["resources"]}
    assert len([rule for rule in found if rule["apiGroups"] == ["scheduling.k8s.io"]]) == rules
    assert "podgroups" in resources
