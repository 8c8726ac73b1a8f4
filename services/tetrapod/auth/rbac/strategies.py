"""Strategies of the four RBAC kinds: defaults, escalation checks before anything else, and validation.

Upstream: pkg/apis/rbac/v1/defaults.go and
pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/strategy.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.auth.rbac.escalation import EscalationGuard
from tetrapod.auth.rbac.validation import validate_binding, validate_binding_update, validate_role
from tetrapod.generic.authorization.rbac_storage import RBAC_GROUP
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.hand_written import HandWritten, Text
from tetrapod.generic.registry.strategy import Revalidation, Strategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_path_segment_name

_ROLE: Final = HandWritten(
    "rules[].verbs",
    "rules[].nonResourceURLs",
    "rules[].apiGroups",
    "rules[].resources",
    "aggregationRule",
    texts={"FieldValueRequired rules[].verbs": Text("verbs must contain at least one value")},
)
_BINDING: Final = HandWritten(
    "roleRef.apiGroup",
    "roleRef.kind",
    "roleRef.name",
    "subjects[].name",
    "subjects[].apiGroup",
    "subjects[].namespace",
    "subjects[].kind",
    "roleRef#",
)


class _RbacStrategy(Strategy):
    allow_create_on_update = True
    revalidates_generate_name: Revalidation = "after finalizers"
    unsafe_deletion = False
    resource: str

    def __init__(self, guard: EscalationGuard, *, namespaced: bool) -> None:
        self.namespaced = namespaced
        self._guard = guard

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        """Return the errors of a name, [] if a path segment can contain it, because RBAC names may contain colons.

        Args:
            name: the name.
            prefix: whether it is metadata.generateName, which upstream treats as a whole name here.
        """
        return is_path_segment_name(name)


class RoleStrategy(_RbacStrategy):
    """The strategy of Roles or ClusterRoles.

    Args:
        guard: checks writes for privilege escalation.
        namespaced: True for Roles, False for ClusterRoles.
    """

    hand_written = _ROLE

    def __init__(self, guard: EscalationGuard, *, namespaced: bool) -> None:
        super().__init__(guard, namespaced=namespaced)
        self.resource = "roles" if namespaced else "clusterroles"

    async def begin_create(self, ctx: Context, obj: Object) -> Any:
        await self._guard.check_role(ctx, self.resource, obj, None)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Any:
        await self._guard.check_role(ctx, self.resource, new, old)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_role(obj, namespaced=self.namespaced)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validate_role(new, namespaced=self.namespaced)

    def canonicalize(self, obj: Object) -> None:
        """Set missing rules to null in place, because upstream's field has no omitempty."""
        obj.setdefault("rules", None)

    def read_back(self, obj: Object) -> None:
        """Set empty rules to null, in place."""
        obj["rules"] = obj["rules"] or None


class BindingStrategy(_RbacStrategy):
    """The strategy of RoleBindings or ClusterRoleBindings.

    Args:
        guard: checks writes for privilege escalation.
        namespaced: True for RoleBindings, False for ClusterRoleBindings.
    """

    hand_written = _BINDING

    def __init__(self, guard: EscalationGuard, *, namespaced: bool) -> None:
        super().__init__(guard, namespaced=namespaced)
        self.resource = "rolebindings" if namespaced else "clusterrolebindings"

    def default(self, obj: Object, version: str) -> None:
        ref = obj.get("roleRef")
        if isinstance(ref, dict) and not ref.get("apiGroup"):
            ref["apiGroup"] = RBAC_GROUP
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = RBAC_GROUP

    async def begin_create(self, ctx: Context, obj: Object) -> Any:
        await self._guard.check_binding(ctx, self.resource, obj, None)

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Any:
        await self._guard.check_binding(ctx, self.resource, new, old)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_binding(obj, namespaced=self.namespaced)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validate_binding_update(new, old, namespaced=self.namespaced)
