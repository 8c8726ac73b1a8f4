"""RBAC rules, pure: does a rule allow a request, and what do all rules of one user allow.

`RuleSet` is what the auth service resolves for a user and hands to the other services; authorizing from it costs a
dictionary look-up once the same question has been asked before. Follows k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go
and plugin/pkg/auth/authorizer/rbac (order of visits, reasons).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tetrapod.generic.authorization.interface import Answer, Attributes, Decision, ResolvedRules

Rule: TypeAlias = Mapping[str, Any]
"""A PolicyRule of rbac.authorization.k8s.io/v1. Nobody changes one."""

ALL: Final = "*"
_MEMO_LIMIT: Final = 4096
"""Questions remembered per user; past it all are forgotten, for paths and names are the client's to choose."""


def values(rule: Rule, key: str) -> Sequence[str]:
    return rule.get(key) or ()


def allows(rule: Rule, attributes: Attributes) -> bool:
    """Whether this rule alone allows the request."""
    if not attributes.resource_request:
        return verb_matches(rule, attributes.verb) and non_resource_url_matches(rule, attributes.path)
    return (
        verb_matches(rule, attributes.verb)
        and group_matches(rule, attributes.group)
        and resource_matches(rule, attributes.resource, attributes.subresource)
        and name_matches(rule, attributes.name)
    )


def verb_matches(rule: Rule, verb: str) -> bool:
    verbs = values(rule, "verbs")
    return ALL in verbs or verb in verbs


def group_matches(rule: Rule, group: str) -> bool:
    groups = values(rule, "apiGroups")
    return ALL in groups or group in groups


def resource_matches(rule: Rule, resource: str, subresource: str) -> bool:
    """`*` is everything, `pods/log` itself, `*/scale` that subresource of anything; `pods/*` is nothing special."""
    resources = values(rule, "resources")
    if ALL in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources


def name_matches(rule: Rule, name: str) -> bool:
    names = values(rule, "resourceNames")
    return not names or name in names


def non_resource_url_matches(rule: Rule, path: str) -> bool:
    return any(url_covers(url, path) for url in values(rule, "nonResourceURLs"))


def url_covers(pattern: str, path: str) -> bool:
    """A trailing `*` covers everything below; elsewhere it is an ordinary character."""
    return pattern in (ALL, path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


class Grant(NamedTuple):
    """What one binding gives: the rules of its role, the reason told when one of them allows, or why it gives nothing."""

    reason: str
    rules: Sequence[Rule]
    error: str = ""


class _Named(NamedTuple):
    names: frozenset[str] | None  # None: any name
    reason: str


class RuleSet:
    """All grants of one user, in the order in which upstream visits them: cluster-wide, then those of the namespace."""

    __slots__ = ("_paths", "_resources", "cluster", "namespaces")

    def __init__(self, cluster: Sequence[Grant] = (), namespaces: Mapping[str, Sequence[Grant]] | None = None) -> None:
        self.cluster = cluster
        self.namespaces = namespaces or {}
        self._resources: dict[tuple[str, str, str, str, str], tuple[_Named, ...]] = {}
        self._paths: dict[tuple[str, str], str | None] = {}

    def reason_to_allow(self, attributes: Attributes) -> str | None:
        """The reason of the first grant that allows the request; None where none does."""
        if not attributes.resource_request:
            return self._path_reason(attributes.verb, attributes.path)
        key = (attributes.verb, attributes.group, attributes.resource, attributes.subresource, attributes.namespace)
        candidates = self._resources.get(key)
        if candidates is None:
            candidates = self._candidates(*key)
        for names, reason in candidates:
            if names is None or attributes.name in names:
                return reason
        return None

    def authorize(self, attributes: Attributes) -> Answer:
        reason = self.reason_to_allow(attributes)
        if reason is not None:
            return Answer(Decision.ALLOW, reason)
        errors = self.errors(attributes.namespace)
        return Answer(Decision.NO_OPINION, f"RBAC: {aggregate(errors)}" if errors else "")

    def grants(self, namespace: str) -> Iterable[Grant]:
        yield from self.cluster
        if namespace:
            yield from self.namespaces.get(namespace, ())

    def errors(self, namespace: str) -> list[str]:
        """Why the set may be incomplete: bindings to roles that are not there."""
        return [grant.error for grant in self.grants(namespace) if grant.error]

    def rules(self, namespace: str) -> list[Rule]:
        return [rule for grant in self.grants(namespace) for rule in grant.rules]

    def resolve(self, namespace: str) -> ResolvedRules:
        """As SelfSubjectRulesReview lists them."""
        resource_rules: list[dict[str, Any]] = []
        non_resource_rules: list[dict[str, Any]] = []
        for rule in self.rules(namespace):
            if values(rule, "resources"):
                resource_rules.append({k: list(v) for k in _RESOURCE_KEYS if (v := values(rule, k))})
            if values(rule, "nonResourceURLs"):
                non_resource_rules.append({k: list(v) for k in ("verbs", "nonResourceURLs") if (v := values(rule, k))})
        return ResolvedRules(resource_rules, non_resource_rules, False, aggregate(self.errors(namespace)))

    def _candidates(self, verb: str, group: str, resource: str, subresource: str, namespace: str) -> tuple[_Named, ...]:
        found: list[_Named] = []
        for grant in self.grants(namespace):
            for rule in grant.rules:
                if verb_matches(rule, verb) and group_matches(rule, group) and resource_matches(rule, resource, subresource):
                    names = values(rule, "resourceNames")
                    found.append(_Named(frozenset(names) if names else None, grant.reason))
                    if not names:
                        return self._remember((verb, group, resource, subresource, namespace), found)
        return self._remember((verb, group, resource, subresource, namespace), found)

    def _remember(self, key: tuple[str, str, str, str, str], found: list[_Named]) -> tuple[_Named, ...]:
        if len(self._resources) >= _MEMO_LIMIT:
            self._resources.clear()
        self._resources[key] = candidates = tuple(found)
        return candidates

    def _path_reason(self, verb: str, path: str) -> str | None:
        key = (verb, path)
        try:
            return self._paths[key]
        except KeyError:
            pass
        reason = next(
            (g.reason for g in self.cluster for r in g.rules if verb_matches(r, verb) and non_resource_url_matches(r, path)),
            None,
        )
        if len(self._paths) >= _MEMO_LIMIT:
            self._paths.clear()
        self._paths[key] = reason
        return reason

    def to_wire(self) -> dict[str, Any]:
        """As the auth service hands it over."""
        return {
            "cluster": [grant._asdict() for grant in self.cluster],
            "namespaces": {name: [grant._asdict() for grant in grants] for name, grants in self.namespaces.items()},
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> RuleSet:
        return cls(
            [_grant(grant) for grant in wire["cluster"]],
            {name: [_grant(grant) for grant in grants] for name, grants in (wire.get("namespaces") or {}).items()},
        )


def _grant(wire: Mapping[str, Any]) -> Grant:
    """What an auth of another release may add is passed over."""
    return Grant(wire.get("reason", ""), wire.get("rules") or (), wire.get("error", ""))


_RESOURCE_KEYS: Final = ("verbs", "apiGroups", "resources", "resourceNames")


def aggregate(errors: Sequence[str]) -> str:
    """Several errors as upstream prints them: each once, in brackets."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
