"""The interfaces of authorizers (upstream: k8s.io/apiserver/pkg/authorization/authorizer)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from tetrapod.machinery.user import UserInfo


class Attributes(NamedTuple):
    """The attributes of a request to authorize (upstream: authorizer.AttributesRecord).

    Attributes:
        user: the user who makes the request.
        verb: the API verb, such as "list"; for other paths, the HTTP method in lower case.
        namespace: the namespace; "" for all namespaces and cluster-scoped resources.
        group: the API group; "" for the core group.
        version: the API version.
        resource: the plural name.
        subresource: the subresource; "" for the resource itself.
        name: the name of the object; "" for a collection.
        resource_request: False for paths such as /healthz, of which only `user`, `path` and `verb` are set.
        path: the path of the request.
        field_requirements: those of the field selector in the query, as FieldSelectorRequirement dicts.
        label_requirements: those of the label selector in the query, as LabelSelectorRequirement dicts.
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

    After NO_OPINION the next authorizer decides. A request that no authorizer allows is rejected.
    """

    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class AuthorizationResult(NamedTuple):
    """A decision with its reason. `error` says why the evaluation was incomplete; "" if it was complete.

    Callers that reject a request with an `error` respond with an internal error instead of 403.
    """

    decision: Decision
    reason: str = ""
    error: str = ""


class Authorizer(Protocol):
    """Decides whether a request is allowed.

    An error of the evaluation is returned in the result, and not raised, unless a service is unavailable.

    Raises:
        StatusError: 503, a service that the decision depends on is unavailable.
    """

    async def authorize(self, attributes: Attributes) -> AuthorizationResult: ...


class RuleResolver(Protocol):
    """A source of the rules that apply to a user in a namespace, for SelfSubjectRulesReview.

    `rules_for` returns those of the user in `namespace`, together with the cluster-wide ones.
    """

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules: ...


class ResolvedRules(NamedTuple):
    """The content of a SubjectRulesReviewStatus.

    Attributes:
        resource_rules: ResourceRule dicts.
        non_resource_rules: NonResourceRule dicts.
        incomplete: whether there may be more rules.
        error: the field `evaluationError`: why there may be more rules; "" if the rules are complete.
    """

    resource_rules: list[dict[str, Any]]
    non_resource_rules: list[dict[str, Any]]
    incomplete: bool
    error: str
