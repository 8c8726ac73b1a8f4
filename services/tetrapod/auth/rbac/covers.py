"""Whether rules cover other rules, and rules told compactly: the arithmetic of privilege escalation. Pure.

Follows k8s.io/component-helpers/auth/rbac/validation (policy_comparator.go) and pkg/registry/rbac/validation/policy_compact.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tetrapod.generic.authorization.rules import ALL, Rule, values
from tetrapod.machinery.field import go_quote

PlainRule = dict[str, Any]


def missing_rights(owned: Sequence[Rule], wanted: Iterable[Rule]) -> list[PlainRule]:
    """Each single right of `wanted` that no rule of `owned` covers."""
    return [right for rule in wanted for right in break_down(rule) if not any(_covers(owner, right) for owner in owned)]


def break_down(rule: Rule) -> Iterator[PlainRule]:
    """One rule for each verb, group, resource and name, and for each verb and URL."""
    for group in values(rule, "apiGroups"):
        for resource in values(rule, "resources"):
            for verb in values(rule, "verbs"):
                right: PlainRule = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = values(rule, "resourceNames")
                if not names:
                    yield right
                for name in names:
                    yield {**right, "resourceNames": [name]}
    for url in values(rule, "nonResourceURLs"):
        for verb in values(rule, "verbs"):
            yield {"nonResourceURLs": [url], "verbs": [verb]}


def _covers(owner: Rule, right: PlainRule) -> bool:
    """Whether one rule covers one broken-down right."""
    return (
        _has_all(owner, "verbs", right)
        and _has_all(owner, "apiGroups", right)
        and all(_covers_resource(values(owner, "resources"), resource) for resource in values(right, "resources"))
        and all(_covers_url(values(owner, "nonResourceURLs"), url) for url in values(right, "nonResourceURLs"))
        and _covers_names(values(owner, "resourceNames"), values(right, "resourceNames"))
    )


def _has_all(owner: Rule, key: str, right: PlainRule) -> bool:
    have = values(owner, key)
    return ALL in have or all(value in have for value in values(right, key))


def _covers_resource(have: Sequence[str], resource: str) -> bool:
    if ALL in have or resource in have:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in have


def _covers_url(have: Sequence[str], url: str) -> bool:
    return any(owned == url or (owned.endswith("*") and url.startswith(owned.rstrip("*"))) for owned in have)


def _covers_names(have: Sequence[str], wanted: Sequence[str]) -> bool:
    return not have or (bool(wanted) and all(name in have for name in wanted))


def compact(rules: Iterable[PlainRule]) -> list[PlainRule]:
    """Rights to one resource (of one name) told as one rule with several verbs."""
    kept: list[PlainRule] = []
    simple: dict[tuple[str, str, tuple[str, ...]], PlainRule] = {}
    for rule in rules:
        groups, resources, names = values(rule, "apiGroups"), values(rule, "resources"), values(rule, "resourceNames")
        if len(groups) != 1 or len(resources) != 1 or len(names) > 1 or values(rule, "nonResourceURLs"):
            kept.append(rule)
            continue
        same = simple.setdefault((groups[0], resources[0], tuple(names)), {**rule, "verbs": []})
        same["verbs"].extend(values(rule, "verbs"))
    return kept + list(simple.values())


def describe(rule: Rule) -> str:
    """`{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}`."""
    named = (
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    )
    parts = (f"{title}:{quoted(listed)}" for title, key in named if (listed := values(rule, key)))
    return "{" + ", ".join(parts) + "}"


def quoted(texts: Iterable[str]) -> str:
    """A list as Go's %q prints it."""
    return "[" + " ".join(map(go_quote, texts)) + "]"
