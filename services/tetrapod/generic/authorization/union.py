"""The combination of authorizers in order: the first one that allows or denies decides (upstream: authorization/union).

The reasons of authorizers without an opinion are joined, each after the authorizer's name: `node: no relationship found
…`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tetrapod.generic.authorization.interface import (
    Attributes,
    AuthorizationResult,
    Authorizer,
    Decision,
    ResolvedRules,
    RuleResolver,
)
from tetrapod.generic.authorization.metrics import DECISIONS
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.user import SYSTEM_MASTERS, UserInfo


class Named(NamedTuple):
    """An authorizer in a `UnionAuthorizer`.

    Attributes:
        name: precedes the reasons of NO_OPINION; "" for no prefix.
        authorizer: the authorizer.
        type: the label under which ALLOW and DENY are counted in the metrics; "" to count nothing.
    """

    name: str
    authorizer: Authorizer
    type: str = ""


class UnionAuthorizer:
    """An authorizer that returns the result of the first of `authorizers` with a decision other than NO_OPINION.

    If all have no opinion, their reasons and errors are joined.
    """

    def __init__(self, authorizers: Sequence[Named]) -> None:
        self._authorizers = tuple(authorizers)

    def replace(self, authorizers: Sequence[Named]) -> None:
        """Replace the authorizers. Calls of `authorize` that are in progress continue with the previous ones."""
        self._authorizers = tuple(authorizers)

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        reasons: list[str] = []
        errors: list[str] = []
        for name, authorizer, kind in self._authorizers:
            answer = await authorizer.authorize(attributes)
            decision, reason, error = answer
            if decision is not Decision.NO_OPINION:
                if kind:
                    DECISIONS.add((kind, name, _DECIDED[decision]))
                return answer
            if reason:
                reasons.append(f"{name}: {reason}" if name else reason)
            if error:
                errors.append(error)
        return AuthorizationResult(Decision.NO_OPINION, "\n".join(reasons), aggregate_errors(errors))


class PrivilegedGroup:
    """The authorizer that allows everything to members of `group`, and has no opinion on other users."""

    def __init__(self, group: str = SYSTEM_MASTERS) -> None:
        self._group = group

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        return _ALLOW if self._group in attributes.user.groups else _NO_OPINION


class HealthPaths:
    """The authorizer that allows /healthz, /livez and /readyz to everyone, and has no opinion on other requests.

    Paths of single checks, such as /livez/ping, are not allowed. Probes have no identity, and their result must not
    depend on authentication.
    Upstream: server/options/authorization.go, AlwaysAllowPaths

    Args:
        verbs: the allowed verbs; None allows all, as upstream.
    """

    def __init__(self, verbs: frozenset[str] | None = None) -> None:
        self._verbs = verbs

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        if attributes.resource_request or attributes.path not in _HEALTH:
            return _NO_OPINION
        return _ALLOW if self._verbs is None or attributes.verb in self._verbs else _NO_OPINION


class AlwaysAllow:
    """The authorizer of `--authorization-mode=AlwaysAllow`, which allows every request. It is also a rule resolver."""

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        return _ALLOW

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        anything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return ResolvedRules([anything], [{"verbs": ["*"], "nonResourceURLs": ["*"]}], False, "")


class AlwaysDeny:
    """The authorizer of `--authorization-mode=AlwaysDeny`: as upstream, it has no opinion and allows nothing."""

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        return AuthorizationResult(Decision.NO_OPINION, "Everything is forbidden.")

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        return ResolvedRules([], [], False, "")


class UnionRuleResolver:
    """A rule resolver that concatenates the rules of several; the result is incomplete if one of them is."""

    def __init__(self, resolvers: Sequence[RuleResolver]) -> None:
        self._resolvers = tuple(resolvers)

    def replace(self, resolvers: Sequence[RuleResolver]) -> None:
        """Replace the resolvers. Calls of `rules_for` that are in progress continue with the previous ones."""
        self._resolvers = tuple(resolvers)

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        answers = [await resolver.rules_for(user, namespace) for resolver in self._resolvers]
        errors = [a.error for a in answers if a.error]
        return ResolvedRules(
            [rule for a in answers for rule in a.resource_rules],
            [rule for a in answers for rule in a.non_resource_rules],
            any(a.incomplete for a in answers),
            aggregate_errors(errors),
        )


_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_DECIDED = {Decision.ALLOW: "allowed", Decision.DENY: "denied"}
_ALLOW = AuthorizationResult(Decision.ALLOW)
_NO_OPINION = AuthorizationResult(Decision.NO_OPINION)
