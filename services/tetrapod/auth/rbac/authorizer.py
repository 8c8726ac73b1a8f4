"""The RBAC authorizer and its rule resolver for SelfSubjectRulesReview.

Upstream: plugin/pkg/auth/authorizer/rbac/rbac.go.
"""

from __future__ import annotations

from tetrapod.auth.rbac.index import RbacIndex
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, ResolvedRules
from tetrapod.machinery.user import UserInfo


class RbacAuthorizer:
    """The authorizer over an `RbacIndex`."""

    def __init__(self, index: RbacIndex) -> None:
        self._index = index

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        return self._index.rules_of(attributes.user).authorize(attributes)

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        return self._index.rules_of(user).resolve(namespace)
