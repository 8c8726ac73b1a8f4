"""All RBAC objects in memory, in step with storage, and the rule set of any user from them.

Follows DefaultRuleResolver of k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go. Where upstream visits every binding for
every question, bindings are indexed here by subject, and a user's rule set is kept until any RBAC object changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tetrapod.generic.authentication.serviceaccount import make_username
from tetrapod.generic.authorization.follow import Following
from tetrapod.generic.authorization.rbac_storage import CLUSTER_ROLES, RBAC_STORAGES, ROLES
from tetrapod.generic.authorization.rules import Grant, RuleSet
from tetrapod.generic.storage.interface import Entry, StorageFactory, WatchEvent
from tetrapod.generic.user import UserInfo
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object

_USER_LIMIT: Final = 4096


class BindingKey(NamedTuple):
    namespace: str  # "" for a ClusterRoleBinding, which upstream visits first
    name: str


class Subject(NamedTuple):
    is_group: bool
    name: str  # a service account by its user name
    described: str


class Binding(NamedTuple):
    subjects: Sequence[Subject]
    role_kind: str
    role_name: str
    described: str


class RbacIndex:
    def __init__(self, storage: StorageFactory) -> None:
        self._roles: dict[tuple[str, str], Sequence[Mapping[str, Any]]] = {}  # namespace "" for ClusterRoles
        self._bindings: dict[BindingKey, Binding] = {}
        self._by_subject: dict[tuple[bool, str], set[BindingKey]] = {}
        self._sets: dict[tuple[str, tuple[str, ...]], RuleSet] = {}
        self._followings = {c.prefix: Following(storage.resource(c), _KindFollower(self, c.kind)) for c in RBAC_STORAGES}
        self.has_policy = asyncio.Event()
        """The bootstrap policy is among what is known: set by the hook that sees to it."""

    async def run(self) -> None:
        """Follow storage until cancelled."""
        async with asyncio.TaskGroup() as group:
            for following in self._followings.values():
                group.create_task(following.run())

    async def synced(self) -> None:
        for following in self._followings.values():
            await following.synced.wait()

    async def reach(self, revisions: Mapping[str, int]) -> None:
        """Know each kind, by its prefix, as far as this."""
        for prefix, revision in revisions.items():
            if (following := self._followings.get(prefix)) is not None:
                await following.reach(revision)

    def revisions(self) -> dict[str, int]:
        return {prefix: following.revision for prefix, following in self._followings.items()}

    def rules_of(self, user: UserInfo) -> RuleSet:
        """Everything that bindings grant this user."""
        key = (user.name, user.groups)
        found = self._sets.get(key)
        if found is None:
            if len(self._sets) >= _USER_LIMIT:
                self._sets.clear()
            found = self._sets[key] = self._resolve(user)
        return found

    def _resolve(self, user: UserInfo) -> RuleSet:
        keys = set(self._by_subject.get((False, user.name), ()))
        for group in user.groups:
            keys |= self._by_subject.get((True, group), set())
        cluster: list[Grant] = []
        namespaces: dict[str, list[Grant]] = {}
        for key in sorted(keys):
            grant = self._grant(key, user)
            (namespaces.setdefault(key.namespace, []) if key.namespace else cluster).append(grant)
        return RuleSet(cluster, namespaces)

    def _grant(self, key: BindingKey, user: UserInfo) -> Grant:
        binding = self._bindings[key]
        subject = next(s for s in binding.subjects if (s.name in user.groups if s.is_group else s.name == user.name))
        role_namespace = key.namespace if binding.role_kind == "Role" else ""
        rules = self._roles.get((role_namespace, binding.role_name))
        if rules is None:
            return Grant("", (), f"{binding.role_kind.lower()}.rbac.authorization.k8s.io {go_quote(binding.role_name)} not found")
        return Grant(f"RBAC: allowed by {binding.described} to {subject.described}", rules)

    # --- changes ---------------------------------------------------------------------------------------------------

    def forget_kind(self, kind: str) -> None:
        self._sets.clear()
        cluster = kind.startswith("Cluster")
        if kind in (ROLES.kind, CLUSTER_ROLES.kind):
            self._roles = {key: rules for key, rules in self._roles.items() if (key[0] == "") is not cluster}
            return
        for key in [key for key in self._bindings if (key.namespace == "") is cluster]:
            self._remove_binding(key)

    def put(self, kind: str, namespace: str, name: str, obj: Object) -> None:
        self._sets.clear()
        if kind in (ROLES.kind, CLUSTER_ROLES.kind):
            self._roles[namespace, name] = obj.get("rules") or ()
            return
        key = BindingKey(namespace, name)
        self._remove_binding(key)
        self._bindings[key] = binding = read_binding(kind, namespace, name, obj)
        for subject in binding.subjects:
            self._by_subject.setdefault((subject.is_group, subject.name), set()).add(key)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        self._sets.clear()
        if kind in (ROLES.kind, CLUSTER_ROLES.kind):
            self._roles.pop((namespace, name), None)
        else:
            self._remove_binding(BindingKey(namespace, name))

    def _remove_binding(self, key: BindingKey) -> None:
        binding = self._bindings.pop(key, None)
        for subject in binding.subjects if binding else ():
            keys = self._by_subject.get((subject.is_group, subject.name), set())
            keys.discard(key)
            if not keys:
                self._by_subject.pop((subject.is_group, subject.name), None)


class _KindFollower:
    """Carries one kind's changes into the index."""

    def __init__(self, index: RbacIndex, kind: str) -> None:
        self._index, self._kind = index, kind

    def reset(self, entries: Sequence[Entry]) -> None:
        self._index.forget_kind(self._kind)
        for entry in entries:
            self._index.put(self._kind, entry.namespace, entry.name, entry.peek())

    def apply(self, event: WatchEvent) -> None:
        entry = event.entry
        if entry is None:
            return
        if event.type == "DELETED":
            self._index.remove(self._kind, entry.namespace, entry.name)
        else:
            self._index.put(self._kind, entry.namespace, entry.name, entry.peek())

    def lost(self) -> None:
        """What is known is kept: an old policy is better than none while storage is away."""


def read_binding(kind: str, namespace: str, name: str, obj: Object) -> Binding:
    ref = obj.get("roleRef") or {}
    role_kind, role_name = ref.get("kind", ""), ref.get("name", "")
    full_name = f"{name}/{namespace}" if namespace else name
    subjects = [s for raw in obj.get("subjects") or () if (s := read_subject(raw, namespace)) is not None]
    described = f"{kind} {go_quote(full_name)} of {role_kind} {go_quote(role_name)}"
    return Binding(subjects, role_kind, role_name, described)


def read_subject(subject: Object, namespace: str) -> Subject | None:
    """None for a subject that can apply to nobody."""
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return Subject(False, make_username(home, name), f"{kind} {go_quote(f'{name}/{home}')}") if home else None
    if kind in ("User", "Group"):
        return Subject(kind == "Group", name, f"{kind} {go_quote(name)}")
    return None
