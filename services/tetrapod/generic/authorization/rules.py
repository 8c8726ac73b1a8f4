"""The evaluation of RBAC rules: whether a rule allows a request, and what all rules of one user allow.

The auth service computes the `RuleSet` of a user and sends it to the other services. Authorizing the same request again
costs one dictionary look-up. Upstream: k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go and
plugin/pkg/auth/authorizer/rbac (order of visits, reasons).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Decision, ResolvedRules
from tetrapod.machinery.boundedcache import BoundedCache
from tetrapod.machinery.error_aggregate import aggregate_errors

Rule: TypeAlias = Mapping[str, Any]
"""A PolicyRule of rbac.authorization.k8s.io/v1. Rules are never modified."""

ALL: Final = "*"


MAX_LISTED_CHARACTERS: Final = 16 * 1024 * 1024
"""Characters of the rules that a review lists. The list has a copy of a role's rules for each binding, which could fill
memory.
"""


def values(rule: Rule, key: str) -> Sequence[str]:
    """Return a list field of a rule, such as `verbs`; empty if it is missing. The result is not a copy."""
    return rule.get(key) or ()


def allows(rule: Rule, attributes: Attributes) -> bool:
    """Return whether this rule alone allows the request."""
    if not attributes.resource_request:
        return verb_matches(rule, attributes.verb) and non_resource_url_matches(rule, attributes.path)
    return (
        verb_matches(rule, attributes.verb)
        and group_matches(rule, attributes.group)
        and resource_matches(rule, attributes.resource, attributes.subresource)
        and name_matches(rule, attributes.name)
    )


def verb_matches(rule: Rule, verb: str) -> bool:
    """Return whether the rule's verbs include `verb` or `*`."""
    verbs = values(rule, "verbs")
    return ALL in verbs or verb in verbs


def group_matches(rule: Rule, group: str) -> bool:
    """Return whether the rule's apiGroups include `group` or `*`."""
    groups = values(rule, "apiGroups")
    return ALL in groups or group in groups


def resource_matches(rule: Rule, resource: str, subresource: str) -> bool:
    """Return whether the rule's resources include `RESOURCE`, or `RESOURCE/SUBRESOURCE` for a subresource (not "").

    `*` matches everything, `pods/log` that subresource, `*/scale` that subresource of any resource. `pods` does not
    match its subresources, and `pods/*` has no special meaning.
    """
    resources = values(rule, "resources")
    if ALL in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources


def name_matches(rule: Rule, name: str) -> bool:
    """Return whether the rule's resourceNames include `name`. A rule without resourceNames matches every name."""
    names = values(rule, "resourceNames")
    return not names or name in names


def non_resource_url_matches(rule: Rule, path: str) -> bool:
    """Return whether one of the rule's nonResourceURLs covers the path of a request."""
    return any(url_covers(url, path) for url in values(rule, "nonResourceURLs"))


def url_covers(pattern: str, path: str) -> bool:
    """Return whether a pattern of nonResourceURLs covers a path.

    A trailing `*` covers every path with this prefix; elsewhere it is an ordinary character.
    """
    return pattern in (ALL, path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


class Grant(NamedTuple):
    """The rules that one RoleBinding or ClusterRoleBinding grants to a user.

    `reason` is the authorizer's reason if one of the rules allows a request. `error` says why the binding grants
    nothing (its role does not exist), and is "" otherwise.
    """

    reason: str
    rules: Sequence[Rule]
    error: str = ""


class _Named(NamedTuple):
    names: frozenset[str] | None  # None: any name
    reason: str


_numbers: Final = count()
_resources: Final[BoundedCache[tuple[int, str, str, str, str, str], tuple[_Named, ...]]] = BoundedCache(
    count=40_000, size=16 << 20, largest=64 << 10
)
"""The rules that may allow a request, by the number of a rule set. All rule sets share this cache, so its size does not
depend on users.
"""
_paths: Final[BoundedCache[tuple[int, str, str], tuple[str | None]]] = BoundedCache(count=10_000, size=4 << 20)
"""The reasons for allowed paths, by the number of a rule set."""


class RuleSet:
    """All grants of one user, in the order in which upstream visits them.

    Args:
        cluster: the grants of ClusterRoleBindings, which come first.
        namespaces: the grants of RoleBindings by namespace.
    """

    __slots__ = ("_number", "cluster", "namespaces")

    def __init__(self, cluster: Sequence[Grant] = (), namespaces: Mapping[str, Sequence[Grant]] | None = None) -> None:
        self.cluster = cluster
        self.namespaces = namespaces or {}
        self._number = next(_numbers)

    @property
    def size(self) -> int:
        """The number of ClusterRoleBindings and RoleBindings that apply to the user, in all namespaces together."""
        return len(self.cluster) + sum(map(len, self.namespaces.values()))

    def reason_to_allow(self, attributes: Attributes) -> str | None:
        """Return the reason of the first grant that allows the request; None if no grant does. The result is cached."""
        if not attributes.resource_request:
            return self._path_reason(attributes.verb, attributes.path)
        key = (
            self._number,
            attributes.verb,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            attributes.namespace,
        )
        candidates = _resources.get(key)
        if candidates is None:
            candidates = _resources.recall(key)
            if candidates is None:
                candidates = _resources.keep(key, self._candidates(*key[1:]))
        for names, reason in candidates:
            if names is None or attributes.name in names:
                return reason
        return None

    def authorize(self, attributes: Attributes) -> AuthorizationResult:
        """Return ALLOW with the reason of the first grant that allows the request, or NO_OPINION.

        The reason of NO_OPINION lists the bindings to roles that do not exist; it is "" if all roles exist.
        """
        reason = self.reason_to_allow(attributes)
        if reason is not None:
            return AuthorizationResult(Decision.ALLOW, reason)
        errors = self.errors(attributes.namespace)
        return AuthorizationResult(Decision.NO_OPINION, f"RBAC: {aggregate_errors(errors)}" if errors else "")

    def grants(self, namespace: str) -> Iterable[Grant]:
        """Yield the cluster-wide grants, then those of `namespace`. `namespace` is "" for cluster-scoped requests."""
        yield from self.cluster
        if namespace:
            yield from self.namespaces.get(namespace, ())

    def errors(self, namespace: str) -> list[str]:
        """Return the errors of the grants that apply in `namespace`: bindings to roles that do not exist."""
        return [grant.error for grant in self.grants(namespace) if grant.error]

    def distinct_grants(self, namespace: str) -> Iterator[Grant]:
        """Yield those of `grants(namespace)` whose rules are not those of an earlier grant.

        Later grants of the same role allow nothing more, and a user may have a thousand bindings to one large role.
        """
        yielded: set[int] = set()
        for grant in self.grants(namespace):
            if id(grant.rules) not in yielded:
                yielded.add(id(grant.rules))
                yield grant

    def distinct_rules(self, namespace: str) -> list[Rule]:
        """Return all rules that apply in `namespace`. The rules of a role with several bindings appear once."""
        return [rule for grant in self.distinct_grants(namespace) for rule in grant.rules]

    def resolve(self, namespace: str) -> ResolvedRules:
        """Return the rules that apply in `namespace`, as SelfSubjectRulesReview lists them.

        As upstream, the rules of a role appear once for each of its bindings. The list ends, and is marked as
        incomplete, before it exceeds `MAX_LISTED_CHARACTERS`.
        """
        listed = _Listed()
        listed_whole = all(listed.add(grant.rules) for grant in self.grants(namespace))
        errors = self.errors(namespace) if listed_whole else [*self.errors(namespace), "too many rules to list"]
        return ResolvedRules(
            listed.resource_rules, listed.non_resource_rules, not listed_whole, aggregate_errors(errors)
        )

    def _candidates(self, verb: str, group: str, resource: str, subresource: str, namespace: str) -> tuple[_Named, ...]:
        candidates: list[_Named] = []
        for grant in self.distinct_grants(namespace):
            for rule in grant.rules:
                if (
                    verb_matches(rule, verb)
                    and group_matches(rule, group)
                    and resource_matches(rule, resource, subresource)
                ):
                    names = values(rule, "resourceNames")
                    candidates.append(_Named(frozenset(names) if names else None, grant.reason))
                    if not names:
                        return tuple(candidates)
        return tuple(candidates)

    def _path_reason(self, verb: str, path: str) -> str | None:
        key = (self._number, verb, path)
        cached = _paths.recall(key)
        return (_paths.keep(key, (self._first_reason(verb, path),)) if cached is None else cached)[0]

    def _first_reason(self, verb: str, path: str) -> str | None:
        for grant in self.distinct_grants(""):
            for rule in grant.rules:
                if verb_matches(rule, verb) and non_resource_url_matches(rule, path):
                    return grant.reason
        return None

    def to_wire(self) -> dict[str, Any]:
        """Return the rule set as JSON values.

        The rules of each role are contained once, and grants refer to them by index.
        """
        roles: list[Sequence[Rule]] = []
        indexes: dict[int, int] = {}

        def grant_to_wire(grant: Grant) -> dict[str, Any]:
            index = indexes.setdefault(id(grant.rules), len(roles))
            if index == len(roles):
                roles.append(grant.rules)
            return {"reason": grant.reason, "role": index, "error": grant.error}

        return {
            "cluster": list(map(grant_to_wire, self.cluster)),
            "namespaces": {name: list(map(grant_to_wire, grants)) for name, grants in self.namespaces.items()},
            "roles": roles,
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> RuleSet:
        """Return the rule set that `to_wire` encoded. Fields that an auth service of another release adds are ignored.

        Raises:
            LookupError, TypeError, AttributeError: the JSON has another structure.
        """
        roles = wire.get("roles") or ()

        def grant(entry: Mapping[str, Any]) -> Grant:
            index = entry.get("role")  # release 0.1 sent the rules with each grant
            rules = entry.get("rules") or () if index is None else roles[index]
            return Grant(entry.get("reason", ""), rules, entry.get("error", ""))

        return cls(
            list(map(grant, wire["cluster"])),
            {name: list(map(grant, grants)) for name, grants in (wire.get("namespaces") or {}).items()},
        )


class _Listed:
    """The rules for the status of one SelfSubjectRulesReview, collected up to `MAX_LISTED_CHARACTERS`."""

    def __init__(self) -> None:
        self.resource_rules: list[dict[str, Any]] = []
        self.non_resource_rules: list[dict[str, Any]] = []
        self._left = MAX_LISTED_CHARACTERS
        self._sizes: dict[int, int] = {}

    def add(self, rules: Sequence[Rule]) -> bool:
        """Append the rules of one role and return True.

        Return False and append nothing if the list would then have more than `MAX_LISTED_CHARACTERS`. Later calls
        return False too.
        """
        size = self._sizes.get(id(rules))
        if size is None:
            size = self._sizes[id(rules)] = sum(
                len(value) + 3 for rule in rules for listed in rule.values() for value in listed or ()
            )
        self._left -= size
        if self._left < 0:
            return False
        for rule in rules:
            if values(rule, "resources"):
                self.resource_rules.append({k: list(v) for k in _RESOURCE_KEYS if (v := values(rule, k))})
            if values(rule, "nonResourceURLs"):
                self.non_resource_rules.append(
                    {k: list(v) for k in ("verbs", "nonResourceURLs") if (v := values(rule, k))}
                )
        return True


_RESOURCE_KEYS: Final = ("verbs", "apiGroups", "resources", "resourceNames")
