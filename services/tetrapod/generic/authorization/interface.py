"""What an authorizer is asked and answers (upstream: k8s.io/apiserver/pkg/authorization/authorizer)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from tetrapod.generic.authentication.user import UserInfo


@dataclass(frozen=True, slots=True)
class Attributes:
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
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class Answer(NamedTuple):
    decision: Decision
    reason: str = ""
    error: str = ""


class Authorizer(Protocol):
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
