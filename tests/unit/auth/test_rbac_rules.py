"""Tests of RBAC matching against a reference that was written from the documentation, not from the code."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.authorization.interface import Attributes, Decision
from tetrapod.generic.authorization.rules import Grant, RuleSet, allows
from tetrapod.machinery.user import UserInfo

VERBS = ["get", "list", "*", "create"]
GROUPS = ["", "apps", "*"]
RESOURCES = ["pods", "pods/log", "*", "*/log", "pods/*", "log"]
NAMES = ["a", "b", ""]
PATHS = ["/x", "/x/y", "/x/", "/xyz", "*"]
EVE = UserInfo("eve")

resource_rules = st.fixed_dictionaries(
    {
        "verbs": st.lists(st.sampled_from(VERBS), max_size=2),
        "apiGroups": st.lists(st.sampled_from(GROUPS), max_size=2),
        "resources": st.lists(st.sampled_from(RESOURCES), max_size=2),
    },
    optional={"resourceNames": st.lists(st.sampled_from(NAMES), max_size=2)},
)
url_rules = st.fixed_dictionaries(
    {
        "verbs": st.lists(st.sampled_from(VERBS), max_size=2),
        "nonResourceURLs": st.lists(st.sampled_from(["/x", "/x/*", "/x*", "*", "/*/y"]), max_size=2),
    }
)
no_selectors: dict[str, Any] = {"field_requirements": st.just(()), "label_requirements": st.just(())}
resource_questions = st.builds(
    Attributes,
    st.just(EVE),
    st.sampled_from(VERBS),
    group=st.sampled_from(GROUPS),
    resource=st.sampled_from(["pods", "log", "services"]),
    subresource=st.sampled_from(["", "log", "status"]),
    name=st.sampled_from(NAMES),
    namespace=st.sampled_from(["", "n", "m"]),
    resource_request=st.just(True),
    **no_selectors,
)
path_questions = st.builds(
    Attributes, st.just(EVE), st.sampled_from(VERBS), path=st.sampled_from(PATHS), **no_selectors
)
questions = st.one_of(resource_questions, path_questions)


def documented(rule: dict[str, Any], question: Attributes) -> bool:
    """Return whether the rule allows the request, following
    https://kubernetes.io/docs/reference/access-authn-authz/rbac/ case by case.
    """
    if "*" not in rule["verbs"] and question.verb not in rule["verbs"]:
        return False
    if not question.resource_request:
        for url in rule.get("nonResourceURLs", []):
            if url[-1] == "*" and question.path[: len(url) - 1] == url[:-1]:
                return True
            if url == question.path:
                return True
        return False
    if not {"*", question.group} & set(rule.get("apiGroups", [])):
        return False
    wanted = {"*"}
    if question.subresource:
        wanted |= {question.resource + "/" + question.subresource, "*/" + question.subresource}
    else:
        wanted |= {question.resource}
    if not wanted & set(rule.get("resources", [])):
        return False
    return not rule.get("resourceNames") or question.name in rule["resourceNames"]


@given(st.one_of(resource_rules, url_rules), questions)
def test_a_rule_allows_what_the_documentation_says(rule: dict[str, Any], question: Attributes) -> None:
    assert allows(rule, question) == documented(rule, question)


grants = st.lists(st.lists(st.one_of(resource_rules, url_rules), max_size=3), max_size=3)


@given(grants, grants, st.lists(questions, max_size=6))
def test_a_rule_set_gives_the_first_binding_that_allows(
    cluster: list[list[dict[str, Any]]], namespaced: list[list[dict[str, Any]]], asked: list[Attributes]
) -> None:
    rules = RuleSet(
        [Grant(f"c{i}", r) for i, r in enumerate(cluster)],
        {"n": [Grant(f"n{i}", r) for i, r in enumerate(namespaced)]},
    )
    rules = RuleSet.from_wire(rules.to_wire())
    for question in [*asked, *asked]:  # the second time from the cache
        visible = [(f"c{i}", r) for i, r in enumerate(cluster)]
        if question.namespace == "n":
            visible += [(f"n{i}", r) for i, r in enumerate(namespaced)]
        expected = next((reason for reason, rs in visible if any(documented(r, question) for r in rs)), None)
        assert rules.reason_to_allow(question) == expected


def test_a_binding_to_a_missing_role_is_reported_with_the_rejection() -> None:
    rules = RuleSet([], {"n": [Grant("", (), 'role.rbac.authorization.k8s.io "r" not found')]})
    answer = rules.authorize(Attributes(EVE, "get", namespace="n", resource="pods", resource_request=True))
    assert answer.decision is Decision.NO_OPINION
    assert answer.reason == 'RBAC: role.rbac.authorization.k8s.io "r" not found'


def test_repeated_authorization_takes_microseconds() -> None:
    rules = RuleSet([Grant("r", [{"verbs": ["get"], "apiGroups": [""], "resources": [f"r{i}" for i in range(200)]}])])
    question = Attributes(EVE, "get", resource="r150", name="x", namespace="n", resource_request=True)
    rules.reason_to_allow(question)
    best = min(_timed(rules, question) for _ in range(5))
    assert best < 5e-6


def _timed(rules: RuleSet, question: Attributes) -> float:
    start = time.perf_counter()
    for _ in range(1000):
        rules.reason_to_allow(question)
    return (time.perf_counter() - start) / 1000


def test_a_large_role_bound_many_times_is_handed_over_once() -> None:
    role = [{"verbs": ["get"], "apiGroups": [""], "resources": [f"r{i}" for i in range(1_000)]}]
    rules = RuleSet([], {f"n{i}": [Grant(f"b{i}", role)] for i in range(1_000)})
    assert rules.to_wire()["roles"] == [role]
    given_over = RuleSet.from_wire(rules.to_wire())
    assert given_over.namespaces == rules.namespaces


def test_a_review_lists_the_rules_of_each_binding_up_to_a_size() -> None:
    role = [{"verbs": ["get"], "apiGroups": [""], "resources": [f"r{i:05}" for i in range(100_000)]}]
    twice = RuleSet([Grant("a", role)], {"n": [Grant("b", role)]}).resolve("n")
    assert twice.resource_rules == role * 2
    assert not twice.incomplete
    many = RuleSet([Grant("a", role)] * 1_000, {}).resolve("n")
    assert 0 < len(many.resource_rules) < 100
    assert many.incomplete
    assert many.error == "too many rules to list"
