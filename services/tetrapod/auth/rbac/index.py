"""`RbacIndex`: an in-memory index of all RBAC objects, which returns the rules of any user, and its authorizer.

Upstream visits every binding for each request. Here bindings are indexed by subject, and the rule set of a user is
cached until any RBAC object changes. The index watches storage.

Upstream: k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go, DefaultRuleResolver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from tetrapod.generic.authentication.serviceaccount import make_username
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, ResolvedRules
from tetrapod.generic.authorization.list_watch import StorageReflector
from tetrapod.generic.authorization.rbac_storage import CLUSTER_ROLES, RBAC_STORAGES, ROLES
from tetrapod.generic.authorization.rules import Grant, RuleSet
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.storage.watch import WatchEvent
from tetrapod.machinery.boundedcache import BoundedCache, weigh
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.user import UserInfo

_GRANT_BYTES: Final = 500
"""Estimated bytes of a grant with its reason. Its rules are shared with the index."""
_MANY_GROUPS: Final = 1000
"""Groups beyond which a user is looked up among the subjects of bindings, which are fewer. Only the subject of an
access review can have so many.
"""


class BindingKey(NamedTuple):
    """The key of a binding in the index; sorted keys are in the order in which upstream visits bindings.

    Attributes:
        namespace: the namespace of a RoleBinding; "" for a ClusterRoleBinding, which upstream visits first.
        name: the name of the binding.
    """

    namespace: str
    name: str


SubjectKey: TypeAlias = tuple[bool, str]
"""Whether the subject is a group, and its name; a service account has its user name."""


class Binding(NamedTuple):
    """The facts of a RoleBinding or ClusterRoleBinding that the index needs.

    Attributes:
        subjects: for each subject its position in the list of subjects, and its description for the reasons of
            decisions. If a subject is repeated, this is its first position.
        role_kind: the kind in roleRef: "Role" or "ClusterRole".
        role_name: the name in roleRef.
        described: the description of the binding for the reasons of decisions.
    """

    subjects: Mapping[SubjectKey, tuple[int, str]]
    role_kind: str
    role_name: str
    described: str


class RbacIndex:
    """The index of all RBAC objects. It is up to date only while `run` is running.

    Args:
        storage: the storage of the four RBAC kinds, which `run` watches.
    """

    def __init__(self, storage: StorageFactory) -> None:
        self._roles: dict[tuple[str, str], Sequence[Mapping[str, Any]]] = {}  # namespace "" for ClusterRoles
        self._bindings: dict[BindingKey, Binding] = {}
        self._by_subject: dict[SubjectKey, set[BindingKey]] = {}
        self._sets: BoundedCache[tuple[str, tuple[str, ...]], RuleSet] = BoundedCache(
            count=8192,
            size=64 << 20,
            largest=16 << 20,
            weigh_entry=lambda key, rules: weigh(key) + _GRANT_BYTES * rules.size,
        )
        self._reflectors = {
            c.prefix: StorageReflector(storage.resource(c), _KindFollower(self, c.kind)) for c in RBAC_STORAGES
        }
        self.has_policy = asyncio.Event()
        """Set when the index contains the bootstrap policy."""

    async def run(self) -> None:
        """Watch all RBAC objects in storage until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors.values():
                group.create_task(reflector.run())

    async def synced(self) -> None:
        """Wait until all four kinds have been listed."""
        for reflector in self._reflectors.values():
            await reflector.synced.wait()

    async def reach(self, revisions: Mapping[str, int]) -> None:
        """Wait until the index contains all changes up to these revisions.

        Args:
            revisions: a revision for each kind, by its storage prefix. Unknown prefixes are ignored.
        """
        for prefix, revision in revisions.items():
            if (reflector := self._reflectors.get(prefix)) is not None:
                await reflector.reach(revision)

    def revisions(self) -> dict[str, int]:
        """Return the revision up to which the index contains each kind, by storage prefix."""
        return {prefix: reflector.revision for prefix, reflector in self._reflectors.items()}

    def rules_of(self, user: UserInfo) -> RuleSet:
        """Return the rule set of a user: the grants of all bindings to the user's name or groups.

        It is cached, except for users of more than _MANY_GROUPS groups.
        """
        if len(user.groups) > _MANY_GROUPS:
            bound_groups = {name for is_group, name in self._by_subject if is_group}
            return self._resolve(user.name, bound_groups.intersection(user.groups))
        key = (user.name, user.groups)
        cached = self._sets.recall(key)
        return self._sets.keep(key, self._resolve(*key)) if cached is None else cached

    def _resolve(self, user: str, groups: Iterable[str]) -> RuleSet:
        subjects: list[SubjectKey] = [(False, user), *((True, group) for group in groups)]
        places: dict[BindingKey, list[SubjectKey]] = {}
        for subject in subjects:
            for key in self._by_subject.get(subject, ()):
                places.setdefault(key, []).append(subject)
        cluster: list[Grant] = []
        namespaces: dict[str, list[Grant]] = {}
        for key in sorted(places):
            grant = self._grant(key, places[key])
            (namespaces.setdefault(key.namespace, []) if key.namespace else cluster).append(grant)
        return RuleSet(cluster, namespaces)

    def _grant(self, key: BindingKey, subjects: Sequence[SubjectKey]) -> Grant:
        """Return the rules that a binding grants, with the reason for decisions that allow by them.

        A missing role gives a grant without rules and with an error text.

        Args:
            subjects: the subjects of the binding that match the user; the reason names the first.
        """
        binding = self._bindings[key]
        _, described = min(binding.subjects[subject] for subject in subjects)
        role_namespace = key.namespace if binding.role_kind == "Role" else ""
        rules = self._roles.get((role_namespace, binding.role_name))
        if rules is None:
            return Grant(
                "", (), f"{binding.role_kind.lower()}.rbac.authorization.k8s.io {go_quote(binding.role_name)} not found"
            )
        return Grant(f"RBAC: allowed by {binding.described} to {described}", rules)

    # --- changes ---------------------------------------------------------------------------------------------------

    def forget_kind(self, kind: str) -> None:
        """Remove all objects of a kind, such as "RoleBinding", from the index."""
        self._sets.clear()
        cluster = kind.startswith("Cluster")
        if kind in (ROLES.kind, CLUSTER_ROLES.kind):
            self._roles = {key: rules for key, rules in self._roles.items() if (key[0] == "") is not cluster}
            return
        for key in [key for key in self._bindings if (key.namespace == "") is cluster]:
            self._remove_binding(key)

    def put(self, kind: str, namespace: str, name: str, obj: Object) -> None:
        """Add an object to the index, or replace it, after it was created or changed in storage.

        Args:
            kind: "Role", "ClusterRole", "RoleBinding" or "ClusterRoleBinding".
            namespace: "" for ClusterRoles and ClusterRoleBindings.
            name: its name.
            obj: the object, which the index keeps and does not modify.
        """
        self._sets.clear()
        if kind in (ROLES.kind, CLUSTER_ROLES.kind):
            self._roles[namespace, name] = obj.get("rules") or ()
            return
        key = BindingKey(namespace, name)
        self._remove_binding(key)
        self._bindings[key] = binding = read_binding(kind, namespace, name, obj)
        for subject in binding.subjects:
            self._by_subject.setdefault(subject, set()).add(key)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object from the index; ignore it if it is not there.

        Args:
            kind: "Role", "ClusterRole", "RoleBinding" or "ClusterRoleBinding".
            namespace: "" for ClusterRoles and ClusterRoleBindings.
            name: its name.
        """
        self._sets.clear()
        if kind in (ROLES.kind, CLUSTER_ROLES.kind):
            self._roles.pop((namespace, name), None)
        else:
            self._remove_binding(BindingKey(namespace, name))

    def _remove_binding(self, key: BindingKey) -> None:
        binding = self._bindings.pop(key, None)
        for subject in binding.subjects if binding else ():
            keys = self._by_subject.get(subject, set())
            keys.discard(key)
            if not keys:
                self._by_subject.pop(subject, None)


class _KindFollower:
    """A watcher of one RBAC kind, which applies the changes in storage to the index.

    Args:
        index: the index.
        kind: the kind, such as "RoleBinding".
    """

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
        """Keep the objects when the watch ends: an outdated policy is better than none while storage is unavailable."""


def read_binding(kind: str, namespace: str, name: str, obj: Object) -> Binding:
    """Convert a RoleBinding or ClusterRoleBinding to a `Binding`.

    Args:
        kind: "RoleBinding" or "ClusterRoleBinding".
        namespace: "" for a ClusterRoleBinding.
    """
    ref = obj.get("roleRef") or {}
    role_kind, role_name = ref.get("kind", ""), ref.get("name", "")
    full_name = f"{name}/{namespace}" if namespace else name
    subjects: dict[SubjectKey, tuple[int, str]] = {}
    for place, raw in enumerate(obj.get("subjects") or ()):
        if (subject := read_subject(raw, namespace)) is not None:
            subjects.setdefault(subject[0], (place, subject[1]))
    described = f"{kind} {go_quote(full_name)} of {role_kind} {go_quote(role_name)}"
    return Binding(subjects, role_kind, role_name, described)


def read_subject(subject: Object, namespace: str) -> tuple[SubjectKey, str] | None:
    """Return the key of the user or group that a subject of a binding names, and its description for reasons.

    Args:
        subject: an element of a binding's subjects.
        namespace: the binding's namespace, which service accounts without a namespace have.

    Returns:
        None if the subject matches no user.
    """
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return ((False, make_username(home, name)), f"{kind} {go_quote(f'{name}/{home}')}") if home else None
    if kind in ("User", "Group"):
        return (kind == "Group", name), f"{kind} {go_quote(name)}"
    return None


class RbacAuthorizer:
    """The authorizer and rule resolver by the rules of an `RbacIndex`.

    Upstream: plugin/pkg/auth/authorizer/rbac/rbac.go.
    """

    def __init__(self, index: RbacIndex) -> None:
        self._index = index

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        return self._index.rules_of(attributes.user).authorize(attributes)

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        return self._index.rules_of(user).resolve(namespace)
