"""Tests of privilege escalation: coverage of rules and its messages; role aggregation; reconciliation at start."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tetrapod.auth.rbac.aggregation import aggregated_rules
from tetrapod.auth.rbac.bootstrap import reconciled
from tetrapod.auth.rbac.coverage import missing_rights
from tetrapod.auth.rbac.descriptions import compact, describe
from tetrapod.auth.rbac.policy import bootstrap_policy
from tetrapod.auth.rbac.validation import validate_binding, validate_binding_update, validate_role
from tetrapod.generic.authorization.interface import Attributes
from tetrapod.generic.authorization.rules import allows
from tetrapod.machinery.metadata import only_owners_and_finalizers_differ
from tetrapod.machinery.user import UserInfo

EVE = UserInfo("eve")
rules = st.one_of(
    st.fixed_dictionaries(
        {
            "verbs": st.lists(st.sampled_from(["get", "list", "*"]), min_size=1, max_size=2),
            "apiGroups": st.lists(st.sampled_from(["", "apps", "*"]), min_size=1, max_size=2),
            "resources": st.lists(st.sampled_from(["pods", "pods/log", "*/log", "*"]), min_size=1, max_size=2),
        },
        optional={"resourceNames": st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2)},
    ),
    st.fixed_dictionaries(
        {
            "verbs": st.lists(st.sampled_from(["get", "*"]), min_size=1, max_size=2),
            "nonResourceURLs": st.lists(st.sampled_from(["/a", "/a/*", "*"]), min_size=1, max_size=2),
        }
    ),
)
questions = [
    Attributes(EVE, verb, group=group, resource=resource, subresource=sub, name=name, resource_request=True)
    for verb in ("get", "list", "watch")
    for group in ("", "apps", "batch")
    for resource in ("pods", "jobs")
    for sub in ("", "log", "exec")
    for name in ("", "a", "c")
] + [Attributes(EVE, verb, path=path) for verb in ("get", "post") for path in ("/a", "/a/b", "/b")]


@given(st.lists(rules, max_size=3), st.lists(rules, max_size=2))
def test_covered_rules_allow_nothing_more(owned: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:

    if not missing_rights(owned, wanted).total:
        for question in questions:
            if any(allows(rule, question) for rule in wanted):
                assert any(allows(rule, question) for rule in owned)


def test_missing_rights_are_reported_compactly() -> None:
    wanted = [
        {"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]
    missing = sorted(describe(rule) for rule in compact(missing_rights([], wanted)))
    assert missing == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}',
        '{NonResourceURLs:["*"], Verbs:["*"]}',
    ]


def test_only_owners_and_finalizers_may_change_unchecked() -> None:
    old = {"metadata": {"name": "a", "finalizers": ["x/y"], "resourceVersion": "5"}, "rules": None}
    assert only_owners_and_finalizers_differ({"metadata": {"name": "a", "ownerReferences": [{}]}, "rules": []}, old)
    assert not only_owners_and_finalizers_differ({"metadata": {"name": "a", "labels": {"a": "b"}}}, old)


def texts(errors: list[Any]) -> list[str]:
    return [str(error) for error in errors]


def test_invalid_roles_have_upstreams_errors() -> None:
    assert texts(validate_role({"rules": [{}]}, namespaced=False)) == [
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
        "rules[0].verbs: Required value",
    ]
    both = {"rules": [{"nonResourceURLs": ["/a"], "apiGroups": [""], "verbs": ["get"]}]}
    assert texts(validate_role(both, namespaced=True)) == [
        'rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs',
        (
            'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and '
            "non-resource URLs"
        ),
    ]
    assert texts(validate_role({"aggregationRule": {}}, namespaced=False)) == [
        (
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if "
            "aggregationRule is non-nil"
        )
    ]


def test_invalid_bindings_have_upstreams_errors() -> None:
    group = "rbac.authorization.k8s.io"
    bad = {"roleRef": {"apiGroup": group, "kind": "", "name": ""}, "subjects": [{"kind": "Node", "name": "n"}, {}]}
    assert texts(validate_binding(bad, namespaced=False)) == [
        'roleRef.kind: Unsupported value: "": supported values: "ClusterRole"',
        'subjects[0].kind: Unsupported value: "Node": supported values: "ServiceAccount", "User", "Group"',
        'subjects[1].kind: Unsupported value: "": supported values: "ServiceAccount", "User", "Group"',
        "subjects[1].name: Required value",
        "roleRef.name: Required value",
    ]
    old = {"roleRef": {"apiGroup": group, "kind": "Role", "name": "a"}}
    new = {"roleRef": {"apiGroup": group, "kind": "Role", "name": "b"}}
    assert texts(validate_binding_update(new, old, namespaced=True)) == [
        f'roleRef: Invalid value: {{"APIGroup":"{group}","Kind":"Role","Name":"b"}}: field is immutable'
    ]


def role(name: str, labels: dict[str, str], *verbs: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "rules": [{"verbs": [v]} for v in verbs], **more}


def test_aggregation_takes_each_rule_once_in_order_of_names() -> None:
    selectors = [{"matchLabels": {"a": "b"}}, {"matchExpressions": [{"key": "c", "operator": "Exists"}]}]
    target = role("t", {"a": "b"}, "own", aggregationRule={"clusterRoleSelectors": selectors})
    others = [
        role("z", {"a": "b"}, "1"),
        role("y", {"a": "b", "c": ""}, "2", "1"),
        role("x", {"c": ""}, "3"),
        role("w", {}, "4"),
    ]
    assert [rule["verbs"][0] for rule in aggregated_rules(target, [target, *others])] == ["2", "1", "3"]


def test_reconciling_adds_and_never_takes_away() -> None:
    wanted = next(o for o in bootstrap_policy()[0].objects if o["metadata"]["name"] == "system:discovery")
    assert reconciled(wanted, wanted) is None
    changed = {
        **wanted,
        "rules": [{"verbs": ["x"], "nonResourceURLs": ["/mine"]}],
        "metadata": {"name": "system:discovery", "labels": {"kubernetes.io/bootstrapping": "no"}},
    }
    better = reconciled(changed, wanted)
    assert better is not None
    assert better["rules"][0] == changed["rules"][0]
    assert not missing_rights(better["rules"], wanted["rules"]).total
    assert better["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "no"
    left_alone = {
        **changed,
        "metadata": {**changed["metadata"], "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}},
    }
    assert reconciled(left_alone, wanted) is None
    binding = next(o for o in bootstrap_policy()[2].objects if o["metadata"]["name"] == "cluster-admin")
    other = {"kind": "User", "name": "x"}
    better = reconciled({**binding, "subjects": [other]}, binding)
    assert better is not None
    assert better["subjects"] == [other, *binding["subjects"]]
