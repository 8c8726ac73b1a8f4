"""Nobody grants more than they have: the checks before a role or binding is written.

Follows pkg/registry/rbac/{escalation_check.go,validation/rule.go} and the policybased storages of upstream. system:masters may
do anything; so may who holds the verb `escalate` on roles, or `bind` on the role that a binding refers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tetrapod.auth.rbac.covers import compact, describe, missing_rights, quoted
from tetrapod.auth.rbac.index import RbacIndex
from tetrapod.generic.authorization.interface import Attributes, Authorizer, Decision
from tetrapod.generic.authorization.rbac_storage import CLUSTER_ROLES, RBAC_GROUP, ROLES
from tetrapod.generic.authorization.rules import Rule
from tetrapod.generic.registry.context import Context
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.user import SYSTEM_MASTERS, UserInfo
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import bad_request, forbidden, not_found

FULL_AUTHORITY: Final[Sequence[Rule]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_UNCOMPARED: Final = ("ownerReferences", "finalizers", "managedFields", "selfLink", "resourceVersion")


class EscalationGuard:
    """The checks, each raising StatusError where the user may not."""

    def __init__(self, authorizer: Authorizer, index: RbacIndex, storage: StorageFactory) -> None:
        self._authorizer = authorizer
        self._index = index
        self._storage = storage

    async def check_role(self, ctx: Context, resource: str, role: Object, old: Object | None) -> None:
        """A Role or ClusterRole, new or changed."""
        if SYSTEM_MASTERS in ctx.user.groups or (old is not None and only_garbage_collection_differs(role, old)):
            return
        name = role["metadata"].get("name", "")
        # Upstream takes the name from the path, where a create has none.
        if await self._may(ctx, "escalate", resource, name if old is not None else ""):
            return
        self._confirm(ctx, resource, name, role.get("rules") or ())
        if not _aggregates(role) and (old is None or not _aggregates(old)):
            return
        if missing_rights(self._owned(ctx.user, ctx.namespace), FULL_AUTHORITY):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(GroupResource(RBAC_GROUP, resource), name, why)

    async def check_binding(self, ctx: Context, resource: str, binding: Object, old: Object | None) -> None:
        """A RoleBinding or ClusterRoleBinding, new or changed."""
        if SYSTEM_MASTERS in ctx.user.groups or (old is not None and only_garbage_collection_differs(binding, old)):
            return
        ref = binding.get("roleRef") or {}
        kind, name = ref.get("kind", ""), ref.get("name", "")
        bound = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
        if bound is not None and await self._may(ctx, "bind", bound, name, ref.get("apiGroup", "")):
            return
        rules = await self._rules_of_role(kind, name, ctx.namespace, resource)
        self._confirm(ctx, resource, binding["metadata"].get("name", ""), rules)

    async def _may(self, ctx: Context, verb: str, resource: str, name: str, group: str = RBAC_GROUP) -> bool:
        question = Attributes(
            ctx.user, verb, namespace=ctx.namespace, group=group, version="*", resource=resource, name=name, resource_request=True
        )
        return (await self._authorizer.authorize(question)).decision is Decision.ALLOW

    def _owned(self, user: UserInfo, namespace: str) -> list[Rule]:
        return self._index.rules_of(user).rules(namespace)

    def _confirm(self, ctx: Context, resource: str, name: str, wanted: Sequence[Rule]) -> None:
        missing = missing_rights(self._owned(ctx.user, ctx.namespace), wanted)
        if not missing:
            return
        told = "\n".join(sorted({describe(rule) for rule in compact(missing)}))
        who = f"user {go_quote(ctx.user.name)} (groups={quoted(ctx.user.groups)})"
        why = f"{who} is attempting to grant RBAC permissions not currently held:\n{told}"
        if errors := self._index.rules_of(ctx.user).errors(ctx.namespace):
            why += f"; resolution errors: [{' '.join(errors)}]"
        raise forbidden(GroupResource(RBAC_GROUP, resource), name, why)

    async def _rules_of_role(self, kind: str, name: str, namespace: str, resource: str) -> Sequence[Rule]:
        if kind not in ("Role", "ClusterRole"):
            raise bad_request(f"unsupported role reference kind: {go_quote(kind)}")
        if kind == "Role" and not namespace:
            raise bad_request("Namespace parameter required.")
        if not name:
            raise bad_request("Name parameter required.")
        config, key = (ROLES, f"{namespace}/{name}") if kind == "Role" else (CLUSTER_ROLES, name)
        entry = await self._storage.resource(config).get(key)
        if entry is None:
            # Upstream reads the role within the binding's request, so that the refusal has the binding's resource (Store.Get).
            raise not_found(GroupResource(RBAC_GROUP, resource), name)
        rules: Sequence[Rule] = entry.peek().get("rules") or ()
        return rules


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def only_garbage_collection_differs(new: Object, old: Object) -> bool:
    """Whether an update changes nothing but owners and finalizers (upstream: rest.IsOnlyMutatingGCFields)."""
    return _compared(new) == _compared(old)


def _compared(obj: Object) -> dict[str, Any]:
    """Without what the garbage collector changes; empty is the same as absent, as in upstream's semantic equality."""
    rest = {key: value for key, value in obj.items() if key != "metadata" and value not in (None, [], {})}
    return {**rest, "metadata": {k: v for k, v in obj["metadata"].items() if k not in _UNCOMPARED and v not in (None, [], {}, "")}}
