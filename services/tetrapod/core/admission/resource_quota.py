"""ResourceQuota: the last to be asked; charges a write to every quota that it falls under, exactly, by compare-and-swap.

Upstream: k8s.io/apiserver/pkg/admission/plugin/resourcequota. A write that fails afterwards is credited by the quota controller.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.kinds import RESOURCE_QUOTAS
from tetrapod.core.quota.charge import charged, difference, exceeded, unspecified
from tetrapod.core.quota.pods import Usage
from tetrapod.core.quota.scopes import in_scope
from tetrapod.core.quota.usage import usage_of
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.endpoints.ownership import of_kind
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
        deltas = {entry.key: delta for entry in page.entries if (delta := _delta(attributes, resource, entry.peek())) is not None}
        for entry in page.entries:
            if entry.key in deltas:
                self._check(attributes, resource, entry.peek(), deltas[entry.key])
        if attributes.dry_run:
            return
        for key, delta in deltas.items():
            await self._charge(attributes, key, delta)

    def _check(self, attributes: Attributes, resource: GroupResource, quota: Object, delta: Usage) -> None:
        if resource == _PODS and attributes.operation == "CREATE" and attributes.object is not None:
            missing = unspecified(attributes.object, (quota.get("status") or {}).get("hard") or ())
            if missing:
                raise forbidden(attributes, f"failed quota: {quota['metadata']['name']}: must specify {missing}")
        if why := exceeded(quota, delta):
            raise forbidden(attributes, why)

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


def _delta(attributes: Attributes, resource: GroupResource, quota: Object) -> Usage | None:
    """What the write adds to the usage of a quota; None where it is none of the quota's."""
    new, old = attributes.object, attributes.old_object
    if new is None or not in_scope(quota, resource, new):
        return None
    used = usage_of(resource, new)
    if attributes.operation == "UPDATE" and old is not None and in_scope(quota, resource, old):
        used = difference(used, usage_of(resource, old))
    hard = (quota.get("status") or {}).get("hard") or {}
    return used if any(name in hard for name in used) else None
