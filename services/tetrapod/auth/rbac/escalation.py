"""`EscalationGuard`: the checks before a role or binding is written. Users grant only rights that they hold.

Exempt are members of system:masters, users with the verb `escalate` on roles, and users with `bind` on the role that a
binding refers to.

Upstream: pkg/registry/rbac/escalation_check.go, pkg/registry/rbac/validation/rule.go, the `policybased` storages of
pkg/registry/rbac
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from tetrapod.auth.rbac.coverage import TooComplexError, first_missing, missing_rights
from tetrapod.auth.rbac.descriptions import compact, describe, quoted
from tetrapod.auth.rbac.index import RbacIndex
from tetrapod.generic.authorization.interface import Attributes, Authorizer, Decision
from tetrapod.generic.authorization.rbac_storage import CLUSTER_ROLES, RBAC_GROUP, ROLES
from tetrapod.generic.authorization.rules import Rule
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.keys import object_key
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.metadata import only_owners_and_finalizers_differ
from tetrapod.machinery.status import bad_request, forbidden, not_found
from tetrapod.machinery.user import SYSTEM_MASTERS

FULL_AUTHORITY: Final[Sequence[Rule]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
MAX_LISTED: Final = 2_000
"""Rights that a rejection lists, of one verb on one resource each; the largest role of upstream's bootstrap policy has
229.
"""
MAX_LISTED_CHARACTERS: Final = 128 * 1024
_OFFLOAD: Final = 200
"""The number of values in rules from which on they are compared in a thread: the text of a rejection takes 10 µs for
each missing right.
"""


class EscalationGuard:
    """The privilege escalation checks of roles and bindings.

    Args:
        authorizer: decides about the verbs `escalate` and `bind`.
        index: has the rules of the requesting user.
        storage: has the roles that bindings refer to.
    """

    def __init__(self, authorizer: Authorizer, index: RbacIndex, storage: StorageFactory) -> None:
        self._authorizer = authorizer
        self._index = index
        self._storage = storage

    async def check_role(self, ctx: Context, resource: str, role: Object, old: Object | None) -> None:
        """Check that the user holds all rights in a new or changed Role or ClusterRole, or may escalate.

        An aggregationRule requires all rights on all resources.

        Args:
            resource: "roles" or "clusterroles".
            role: the object to write.
            old: the stored object, or None on create. A change of only owners and finalizers is not checked.

        Raises:
            StatusError: 403, the user may not write the role.
        """
        if SYSTEM_MASTERS in ctx.user.groups or (old is not None and only_owners_and_finalizers_differ(role, old)):
            return
        name = role["metadata"].get("name", "")
        # Upstream takes the name from the path, where a create has none.
        if await self._may(ctx, "escalate", resource, name if old is not None else ""):
            return
        await self._confirm(ctx, resource, name, role.get("rules") or ())
        if not _aggregates(role) and (old is None or not _aggregates(old)):
            return
        if await self._missing(ctx, FULL_AUTHORITY):
            message = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(GroupResource(RBAC_GROUP, resource), name, message)

    async def check_binding(self, ctx: Context, resource: str, binding: Object, old: Object | None) -> None:
        """Check that the user holds all rights of the role that a new or changed binding refers to, or may bind it.

        The role is read only for users who are neither in system:masters nor may bind it. Others may bind a role that
        does not exist.

        Args:
            resource: "rolebindings" or "clusterrolebindings".
            binding: the object to write.
            old: the stored object, or None on create. A change of only owners and finalizers is not checked.

        Raises:
            StatusError: 403, the user may not write the binding; 404, the role does not exist; 400, roleRef is invalid.
        """
        if SYSTEM_MASTERS in ctx.user.groups or (old is not None and only_owners_and_finalizers_differ(binding, old)):
            return
        ref = binding.get("roleRef") or {}
        kind, name = ref.get("kind", ""), ref.get("name", "")
        bound = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
        if bound is not None and await self._may(ctx, "bind", bound, name, ref.get("apiGroup", "")):
            return
        rules = await self._rules_of_role(kind, name, ctx.namespace, resource)
        await self._confirm(ctx, resource, binding["metadata"].get("name", ""), rules)

    async def _may(self, ctx: Context, verb: str, resource: str, name: str, group: str = RBAC_GROUP) -> bool:
        attributes = Attributes(
            ctx.user,
            verb,
            namespace=ctx.namespace,
            group=group,
            version="*",
            resource=resource,
            name=name,
            resource_request=True,
        )
        return (await self._authorizer.authorize(attributes)).decision is Decision.ALLOW

    async def _missing(self, ctx: Context, granted: Sequence[Rule]) -> str:
        """Return a text that lists the granted rights that the user does not hold, or "" if the user holds all.

        Args:
            granted: the rules of a role.
        """
        held = self._index.rules_of(ctx.user).distinct_rules(ctx.namespace)
        if _size(granted) + len(held) < _OFFLOAD:
            return missing_text(held, granted)
        return await asyncio.to_thread(missing_text, held, granted)

    async def _confirm(self, ctx: Context, resource: str, name: str, granted: Sequence[Rule]) -> None:
        """Check that the user holds all granted rights.

        Args:
            resource: the resource of the object to write, for the error.
            name: its name, for the error.
            granted: the rules of a role.

        Raises:
            StatusError: 403 with a list of the missing rights.
        """
        missing = await self._missing(ctx, granted)
        if not missing:
            return
        subject = f"user {go_quote(ctx.user.name)} (groups={quoted(ctx.user.groups)})"
        message = f"{subject} is attempting to grant RBAC permissions not currently held:\n{missing}"
        if errors := self._index.rules_of(ctx.user).errors(ctx.namespace):
            # Upstream reads the roles through the storage of the request, which names the resource of the request.
            named = (f"{resource}.{error.partition('.')[2]}" for error in errors)
            message += f"; resolution errors: [{aggregate_errors(named)}]"
        raise forbidden(GroupResource(RBAC_GROUP, resource), name, message)

    async def _rules_of_role(self, kind: str, name: str, namespace: str, resource: str) -> Sequence[Rule]:
        if kind not in ("Role", "ClusterRole"):
            raise bad_request(f"unsupported role reference kind: {go_quote(kind)}")
        namespaced = kind == "Role"
        key = object_key(namespaced, namespace, name)
        entry = await self._storage.resource(ROLES if namespaced else CLUSTER_ROLES).get(key)
        if entry is None:
            # Upstream reads the role in the context of the binding's request, so the error names the binding's resource
            # (Store.Get).
            raise not_found(GroupResource(RBAC_GROUP, resource), name)
        rules: Sequence[Rule] = entry.peek().get("rules") or ()
        return rules


def missing_text(held: Sequence[Rule], granted: Sequence[Rule]) -> str:
    """Return a text with the rights of `granted` that `held` does not cover, one rule a line; "" if it covers all.

    If comparing the rules takes too many steps, the text says that instead, even if `held` covers all rights. Upstream
    lists all rights. Here the text is bounded, since a rule of 2 kB can have a million rights.
    """
    try:
        missing = missing_rights(held, granted)
    except TooComplexError:
        return "the rules granted are too many to be compared with those of the user"
    listed = first_missing(missing, MAX_LISTED, MAX_LISTED_CHARACTERS)
    lines = sorted({describe(rule) for rule in compact(listed)})
    if more := missing.total - len(listed):
        lines.append(f"and {more} more")
    return "\n".join(lines)


def _size(rules: Sequence[Rule]) -> int:
    return sum(len(listed) for rule in rules for listed in rule.values() if listed)


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))
