"""ResourceQuota: the last to be asked; charges a write to every quota that it falls under, exactly, by compare-and-swap.

Upstream: k8s.io/apiserver/pkg/admission/plugin/resourcequota. A write that fails afterwards is credited by the quota controller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tetrapod.core.admission.kinds import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_QUOTAS
from tetrapod.core.quota.charge import charged, exceeded, growth, uncounted, unspecified
from tetrapod.core.quota.devices import ALONE, CLAIMS, Surroundings
from tetrapod.core.quota.pods import Usage
from tetrapod.core.quota.scopes import in_scope, is_terminating
from tetrapod.core.quota.surroundings import around
from tetrapod.core.quota.usage import concerning, usage_of
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.endpoints.ownership import of_kind
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import Entry, KeyNotFound, ListQuery, StorageFactory, Updated
from tetrapod.machinery.gvk import GroupResource, GroupVersionKind, Object
from tetrapod.machinery.types import definitions as types

_UPDATES: Final = frozenset(
    {("pods", ""), ("pods", "resize"), ("services", ""), ("persistentvolumeclaims", ""), ("resourceclaims.resource.k8s.io", "")}
)
_MANAGER: Final = "kube-apiserver"
"""Who owns what is used: upstream charges through a client of its own."""
_PODS: Final = GroupResource("", "pods")


class ResourceQuota(Plugin):
    name = "ResourceQuota"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, storages: StorageFactory) -> None:
        self._quotas = storages.resource(RESOURCE_QUOTAS)
        self._look = _Look(storages)
        kind = GroupVersionKind("", "v1", "ResourceQuota")
        self._ownership = of_kind(kind, lambda: types.schema_for(kind), "status")

    def handles(self, attributes: Attributes) -> bool:
        if not attributes.namespace or attributes.kind.kind == "Namespace":
            return False
        if attributes.operation == "CREATE":
            return not attributes.subresource
        return (str(attributes.resource.group_resource), attributes.subresource) in _UPDATES

    async def validate(self, attributes: Attributes) -> None:
        page = await self._quotas.list(ListQuery(f"{attributes.namespace}/", resource_version="0"))
        if not page.entries:
            return
        resource = attributes.resource.group_resource
        change = await self._change(attributes, resource)
        if change is None:
            return
        concerned = [entry for entry in page.entries if self._concerns(attributes, change, entry.peek())]
        deltas = {entry.key: delta for entry in concerned if (delta := change.delta(entry.peek()))}
        for entry in concerned:
            if entry.key in deltas and (why := exceeded(entry.peek(), deltas[entry.key])):
                raise forbidden(attributes, why)
        if attributes.dry_run:
            return
        for key, delta in deltas.items():
            await self._charge(attributes, key, delta)

    async def _change(self, attributes: Attributes, resource: GroupResource) -> _Change | None:
        new, old = attributes.object, attributes.old_object if attributes.operation == "UPDATE" else None
        if new is None:
            return None
        if resource == _PODS and old is not None and not attributes.subresource and is_terminating(old) == is_terminating(new):
            return None
        involved = await around(new, self._look) if resource == CLAIMS else ALONE
        before = await around(old, self._look) if resource == CLAIMS and old is not None else ALONE
        return _Change(resource, new, usage_of(resource, new, involved), involved, old, usage_of(resource, old, before) if old else {})

    def _concerns(self, attributes: Attributes, change: _Change, quota: Object) -> bool:
        """Whether the quota is about the object, which must say then what it needs; what it uses is another question."""
        names = change.names(quota)
        if not names:
            return False
        if change.resource == _PODS and (missing := unspecified(change.new, names)):
            raise forbidden(attributes, f"failed quota: {quota['metadata']['name']}: must specify {missing}")
        if why := uncounted(quota, names):
            raise forbidden(attributes, why)
        return True

    async def _charge(self, attributes: Attributes, key: str, delta: Usage) -> None:
        async def attempt(current: Object | None, _: Entry | None) -> Updated | None:
            if current is None:
                return None
            if why := exceeded(current, delta):
                raise forbidden(attributes, why)
            used = charged(current, delta)
            if used is None:
                return None
            charge = {**current, "status": {**current["status"], "used": used}}
            return Updated(self._ownership.update(current, charge, _MANAGER))

        try:
            await self._quotas.guaranteed_update(key, attempt)
        except KeyNotFound:
            return  # a quota that has gone limits nothing


@dataclass(frozen=True, slots=True)
class _Change:
    """What a write does to what is used."""

    resource: GroupResource
    new: Object
    used: Usage
    around: Surroundings
    old: Object | None
    old_used: Usage

    def names(self, quota: Object) -> list[str]:
        """What the quota limits of such objects; nothing where this one is not in its scope."""
        hard = (quota.get("status") or {}).get("hard") or {}
        return concerning(self.resource, hard, self.around) if in_scope(quota, self.resource, self.new) else []

    def delta(self, quota: Object) -> Usage:
        """What it adds to the usage of a quota that it concerns."""
        counted = self.old is not None and in_scope(quota, self.resource, self.old)
        return growth(self.used, self.old_used if counted else {})


class _Look:
    """From this process's caches."""

    def __init__(self, storages: StorageFactory) -> None:
        self._classes = Lister(storages, DEVICE_CLASSES)
        self._pods = Lister(storages, PODS)
        self._claims = Lister(storages, RESOURCE_CLAIMS)

    async def classes(self) -> list[Object]:
        return await self._classes.list()

    async def pod(self, namespace: str, name: str) -> Object | None:
        return await self._pods.get(namespace, name)

    async def claims(self, namespace: str) -> list[Object]:
        return await self._claims.list(namespace)
