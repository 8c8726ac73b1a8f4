"""The interfaces of authorizers (upstream: k8s.io/apiserver/pkg/authorization/authorizer)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from tetrapod.machinery.user import UserInfo


class Attributes(NamedTuple):
    """The attributes of a request to authorize (upstream: authorizer.AttributesRecord).

    A non-resource request has a `path`, and `resource_request` is False. The requirements are those of selectors in the
    query, as FieldSelectorRequirement and LabelSelectorRequirement dicts.
    """

    user: UserInfo
    verb: str
    namespace: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    resource_request: bool = False
    path: str = ""
    field_requirements: Sequence[dict[str, Any]] = ()
    label_requirements: Sequence[dict[str, Any]] = ()


class Decision(Enum):
    """The decision of an authorizer.

    NO_OPINION leaves it to the next authorizer; a request that none allows is rejected.
    """

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class AuthorizationResult(NamedTuple):
    """A decision with its reason. `error` is what prevented a complete evaluation; it does not change the decision."""

    decision: Decision
    reason: str = ""
    error: str = ""


class Authorizer(Protocol):
    """An authorizer. Errors of the evaluation are returned in the answer."""

    async def authorize(self, attributes: Attributes) -> AuthorizationResult: ...


class RuleResolver(Protocol):
    """A source of all rules of a user, for SelfSubjectRulesReview."""

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules: ...


class ResolvedRules(NamedTuple):
    """Rules as rbac.authorization.k8s.io/v1 PolicyRule dicts."""

    resource_rules: list[dict[str, Any]]
    non_resource_rules: list[dict[str, Any]]
    incomplete: bool
    error: str
