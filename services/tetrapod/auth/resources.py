"""`auth_resources`: the list of the resources that the auth service serves."""

from __future__ import annotations

from typing import Final

from tetrapod.auth.rbac.escalation import EscalationGuard
from tetrapod.auth.rbac.strategies import BindingStrategy, RoleStrategy
from tetrapod.auth.rbac.table import BINDING_TABLE
from tetrapod.auth.reviews.access import LocalSubjectAccessReviews, SelfSubjectAccessReviews, SubjectAccessReviews
from tetrapod.auth.reviews.authentication import SelfSubjectReviews, TokenReviews
from tetrapod.auth.reviews.rules import SelfSubjectRulesReviews
from tetrapod.generic.authentication.interface import TokenAuthenticator
from tetrapod.generic.authorization.interface import Authorizer, RuleResolver
from tetrapod.generic.authorization.rbac_storage import RBAC_GROUP
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


def auth_resources(
    *,
    tokens: TokenAuthenticator,
    audiences: tuple[str, ...],
    anonymous: bool,
    authorizer: Authorizer,
    resolver: RuleResolver,
    guard: EscalationGuard,
) -> list[ResourceDefinition]:
    """Return the definitions of all resources of the auth service, in the order of discovery.

    Args:
        tokens: authenticates the tokens of TokenReviews.
        audiences: the audiences of this server, for TokenReviews that name none.
        anonymous: whether a TokenReview with an empty bearer token succeeds as the anonymous user.
        authorizer: answers access reviews.
        resolver: answers SelfSubjectRulesReviews.
        guard: checks writes of roles and bindings for privilege escalation.
    """
    return [
        _review(AUTHENTICATION, "selfsubjectreviews", SelfSubjectReviews()),
        _review(AUTHENTICATION, "tokenreviews", TokenReviews(tokens, audiences, anonymous=anonymous)),
        _review(AUTHORIZATION, "localsubjectaccessreviews", LocalSubjectAccessReviews(authorizer)),
        _review(AUTHORIZATION, "selfsubjectaccessreviews", SelfSubjectAccessReviews(authorizer)),
        _review(AUTHORIZATION, "selfsubjectrulesreviews", SelfSubjectRulesReviews(resolver)),
        _review(AUTHORIZATION, "subjectaccessreviews", SubjectAccessReviews(authorizer)),
        builtin(RBAC_GROUP, "clusterrolebindings", BindingStrategy(guard, namespaced=False), table=BINDING_TABLE),
        builtin(RBAC_GROUP, "clusterroles", RoleStrategy(guard, namespaced=False)),
        builtin(RBAC_GROUP, "rolebindings", BindingStrategy(guard, namespaced=True), table=BINDING_TABLE),
        builtin(RBAC_GROUP, "roles", RoleStrategy(guard, namespaced=True)),
    ]


def _review(group: str, resource: str, rest: Rest) -> ResourceDefinition:
    return builtin(group, resource, Strategy(), rest=rest)
