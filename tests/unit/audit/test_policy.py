"""Tests of audit policies: the first matching rule decides, and resources and paths match like in upstream's
checker.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.audit.policy import Level
from tetrapod.generic.audit.policy_file import policy_of
from tetrapod.machinery import requestinfo
from tetrapod.machinery.user import UserInfo

TIM = UserInfo("tim", groups=("humans", "developers"))
REQUESTS = {
    "namespaced": requestinfo.parse("GET", "/api/v1/namespaces/default/pods/busybox"),
    "cluster": requestinfo.parse("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit"),
    "nonResource": requestinfo.parse("GET", "/logs/kubelet.log"),
    "subresource": requestinfo.parse("GET", "/api/v1/namespaces/default/pods/busybox/log"),
}


def level(rules: list[Any], request: str = "namespaced", user: UserInfo | None = TIM, **policy: Any) -> Level:
    return policy_of({"rules": rules, **policy}).evaluate(user, REQUESTS[request]).level


RULES: dict[str, dict[str, Any]] = {
    "default": {"level": "Metadata"},
    "create": {"level": "Request", "verbs": ["create"]},
    "tim": {"level": "Metadata", "users": ["tim"]},
    "humans": {"level": "Metadata", "userGroups": ["humans"]},
    "serviceAccounts": {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
    "getPods": {"level": "Request", "verbs": ["get"], "resources": [{"resources": ["pods"]}]},
    "getPodLogs": {"level": "Request", "verbs": ["get"], "resources": [{"resources": ["pods/log"]}]},
    "getPodWildcardMatching": {"level": "Request", "verbs": ["get"], "resources": [{"resources": ["*"]}]},
    "getPodResourceWildcardMatching": {"level": "Request", "verbs": ["get"], "resources": [{"resources": ["*/log"]}]},
    "getPodSubResourceWildcardMatching": {
        "level": "Request",
        "verbs": ["get"],
        "resources": [{"resources": ["pods/*"]}],
    },
    "getClusterRoles": {
        "level": "RequestResponse",
        "verbs": ["get"],
        "resources": [{"group": "rbac.authorization.k8s.io", "resources": ["clusterroles"]}],
        "namespaces": [""],
    },
    "getLogs": {"level": "RequestResponse", "verbs": ["get"], "nonResourceURLs": ["/logs*"]},
    "getMetrics": {"level": "RequestResponse", "verbs": ["get"], "nonResourceURLs": ["/metrics"]},
    "clusterRoleEdit": {
        "level": "RequestResponse",
        "resources": [{"group": "rbac.authorization.k8s.io", "resources": ["clusterroles"], "resourceNames": ["edit"]}],
    },
    "anyGroup": {"level": "Request", "resources": [{"group": "*"}]},
    "omit": {"level": "None"},
}
NOTHING, META, REQ, BOTH = Level.NONE, Level.METADATA, Level.REQUEST, Level.REQUEST_RESPONSE


@pytest.mark.parametrize(
    ("request_", "expected", "names"),
    [  # upstream's own table (policy/checker_test.go), and a few more
        ("namespaced", META, ["default"]),
        ("namespaced", NOTHING, ["create"]),
        ("namespaced", META, ["tim"]),
        ("namespaced", META, ["humans"]),
        ("namespaced", NOTHING, ["serviceAccounts"]),
        ("namespaced", REQ, ["getPods"]),
        ("namespaced", NOTHING, ["getClusterRoles"]),
        ("namespaced", NOTHING, ["getLogs"]),
        ("namespaced", META, ["getMetrics", "serviceAccounts", "humans", "default"]),
        ("namespaced", REQ, ["getMetrics", "getPods", "default"]),
        ("namespaced", REQ, ["getPodLogs", "getPods"]),
        ("namespaced", NOTHING, ["omit", "getPods"]),
        ("namespaced", NOTHING, ["getPodLogs"]),
        ("namespaced", REQ, ["getPodWildcardMatching"]),
        ("namespaced", REQ, ["getPodSubResourceWildcardMatching"]),
        ("namespaced", NOTHING, ["getPodResourceWildcardMatching"]),
        ("namespaced", NOTHING, ["clusterRoleEdit"]),
        ("namespaced", REQ, ["anyGroup"]),
        ("cluster", META, ["default"]),
        ("cluster", NOTHING, ["getPods"]),
        ("cluster", BOTH, ["getClusterRoles"]),
        ("cluster", BOTH, ["clusterRoleEdit", "getPods"]),
        ("cluster", NOTHING, ["getLogs"]),
        ("nonResource", META, ["default"]),
        ("nonResource", NOTHING, ["create"]),
        ("nonResource", META, ["tim"]),
        ("nonResource", NOTHING, ["getPods", "getClusterRoles", "anyGroup"]),
        ("nonResource", BOTH, ["getLogs"]),
        ("nonResource", NOTHING, ["getMetrics"]),
        ("subresource", REQ, ["getPodLogs"]),
        ("subresource", NOTHING, ["getPods"]),
        ("subresource", REQ, ["getPodWildcardMatching"]),
        ("subresource", REQ, ["getPodResourceWildcardMatching"]),
        ("subresource", REQ, ["getPodSubResourceWildcardMatching"]),
    ],
)
def test_the_first_matching_rule_sets_the_level(request_: str, expected: Level, names: list[str]) -> None:
    assert level([RULES[name] for name in names], request_) is expected


def test_an_unknown_user_matches_no_rule_about_users() -> None:
    assert level([RULES["tim"], RULES["humans"]], user=None) is NOTHING
    assert level([RULES["default"]], user=None) is META


def test_stages_add_up_and_managed_fields_are_overridden() -> None:
    rules = [
        {"level": "Metadata", "verbs": ["get"], "omitStages": ["Panic"], "omitManagedFields": False},
        {"level": "Request"},
    ]
    policy = policy_of({"rules": rules, "omitStages": ["RequestReceived"], "omitManagedFields": True})
    first, second = (
        policy.evaluate(TIM, requestinfo.parse(method, "/api/v1/namespaces/a/pods/b")) for method in ("GET", "PUT")
    )
    assert (first.omit_stages, first.omit_managed_fields) == (frozenset({"RequestReceived", "Panic"}), False)
    assert (second.omit_stages, second.omit_managed_fields) == (frozenset({"RequestReceived"}), True)


# --- compared with a literal transcription of upstream's checker

WORDS = st.sampled_from(["a", "b", "pods", "pods/log", "pods/*", "*/log", "*", "log", "/a*", "/a", "", "*/", "/*"])
LISTS = st.lists(WORDS, max_size=3)
GROUP_RESOURCES = st.fixed_dictionaries(
    {}, optional={"group": st.sampled_from(["", "*", "apps"]), "resources": LISTS, "resourceNames": LISTS}
)
ANY_RULE = st.fixed_dictionaries(
    {"level": st.sampled_from(["None", "Metadata", "Request", "RequestResponse"])},
    optional={
        "users": LISTS,
        "userGroups": LISTS,
        "verbs": st.lists(st.sampled_from(["get", "list", "create"]), max_size=2),
        "namespaces": st.lists(st.sampled_from(["", "a", "b"]), max_size=2),
        "resources": st.lists(GROUP_RESOURCES, max_size=2),
        "nonResourceURLs": LISTS,
    },
)
PATHS = st.sampled_from(
    [
        "/a",
        "/ab",
        "/",
        "/api/v1/pods",
        "/api/v1/namespaces/a/pods/b",
        "/api/v1/namespaces/a/pods/b/log",
        "/apis/apps/v1/a/b/log",
        "/api/v1/a",
    ]
)


def _reference(rule: dict[str, Any], user: UserInfo, info: requestinfo.RequestInfo) -> bool:
    if rule.get("users") and user.name not in rule["users"]:
        return False
    if rule.get("userGroups") and not any(group in rule["userGroups"] for group in user.groups):
        return False
    if rule.get("verbs") and info.verb not in rule["verbs"]:
        return False
    if rule.get("namespaces") or rule.get("resources"):
        if not info.is_resource_request:
            return False
        if rule.get("namespaces") and info.namespace not in rule["namespaces"]:
            return False
        if not rule.get("resources"):
            return True
        combined = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        for gr in rule["resources"]:
            if gr.get("group", "") not in (info.api_group, "*"):
                continue
            if not gr.get("resources"):
                return True
            for res in gr["resources"]:
                if not gr.get("resourceNames") or info.name in gr["resourceNames"]:
                    if res in (combined, "*"):
                        return True
                    if info.subresource and res.startswith("*/") and info.subresource == res[2:]:
                        return True
                    if res.endswith("/*") and info.resource == res[:-2]:
                        return True
        return False
    if rule.get("nonResourceURLs"):
        if info.is_resource_request:
            return False
        return any(
            url in ("*", info.path) or (url.endswith("*") and info.path.startswith(url.rstrip("*")))
            for url in rule["nonResourceURLs"]
        )
    return True


@given(st.lists(ANY_RULE, min_size=1, max_size=4), PATHS, st.sampled_from(["GET", "POST"]), LISTS)
def test_rules_match_as_upstreams_checker_reads_them(
    rules: list[Any], path: str, method: str, groups: list[str]
) -> None:
    user, info = UserInfo("a", groups=tuple(groups)), requestinfo.parse(method, path)
    expected = next((rule["level"] for rule in rules if _reference(rule, user, info)), "None")
    assert policy_of({"rules": rules}).evaluate(user, info).level is {
        "None": NOTHING,
        "Metadata": META,
        "Request": REQ,
    }.get(expected, BOTH)
