"""Rules of roles as text, for the messages about privilege escalation.

Upstream: pkg/registry/rbac/validation/policy_compact.go, CompactRules; pkg/apis/rbac/v1/helpers.go, CompactString
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tetrapod.generic.authorization.rules import Rule, values
from tetrapod.machinery.golang.quoting import go_quote


def compact(rules: Iterable[Rule]) -> list[Rule]:
    """Join rules that differ only in their verbs, if each names one resource of one group and at most one object name.

    All other rules come first in the result. The arguments are not modified.
    """
    kept: list[Rule] = []
    simple: dict[tuple[str, str, tuple[str, ...]], dict[str, Any]] = {}
    for rule in rules:
        groups, resources, names = values(rule, "apiGroups"), values(rule, "resources"), values(rule, "resourceNames")
        if len(groups) != 1 or len(resources) != 1 or len(names) > 1 or values(rule, "nonResourceURLs"):
            kept.append(rule)
            continue
        same = simple.setdefault((groups[0], resources[0], tuple(names)), {**rule, "verbs": []})
        same["verbs"].extend(values(rule, "verbs"))
    return [*kept, *simple.values()]


def describe(rule: Rule) -> str:
    """Return a rule as text: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}`."""
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
    """Return the texts as Go's `%q` prints a slice of strings."""
    return "[" + " ".join(map(go_quote, texts)) + "]"
