"""What an authorizer is asked and answers (upstream: k8s.io/apiserver/pkg/authorization/authorizer)."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple, Protocol

from tetrapod.generic.user import UserInfo


class Attributes(NamedTuple):
    """The question (upstream: authorizer.AttributesRecord). A request for no resource has a `path`, and `resource_request` False.

    Requirements are those of a selector in the query, as FieldSelectorRequirement and LabelSelectorRequirement dicts.
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
    field_requirements: tuple[dict[str, Any], ...] = ()
    label_requirements: tuple[dict[str, Any], ...] = ()


class Decision(Enum):
    """NO_OPINION leaves it to the next authorizer; a request that none allows is refused."""

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class Answer(NamedTuple):
    """`error` tells what kept the authorizer from knowing more; it does not change the decision."""

    decision: Decision
    reason: str = ""
    error: str = ""


class Authorizer(Protocol):
    """What goes wrong on the way is told in the answer."""

    async def authorize(self, attributes: Attributes) -> Answer: ...


class RuleResolver(Protocol):
    """Lists what a user may do (SelfSubjectRulesReview, and the rule cache of the other services)."""

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules: ...


class ResolvedRules(NamedTuple):
    """Rules as rbac.authorization.k8s.io/v1 PolicyRule dicts."""

    resource_rules: list[dict[str, Any]]
    non_resource_rules: list[dict[str, Any]]
    incomplete: bool
    error: str
