"""ResourceQuota: the last to be asked; charges a write to every quota that it falls under, exactly, by compare-and-swap.

Reads and charges quotas as stored, whichever service serves them. Upstream: k8s.io/apiserver/pkg/admission/plugin/resourcequota. A write
that fails afterwards is credited by the quota controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final, Protocol

from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.admission.plugins.quota_evaluator import Change, Evaluator, ObjectCounts
from tetrapod.generic.quota.charge import Usage, charged, exceeded, uncounted
from tetrapod.generic.storage.interface import Entry, KeyNotFound, ListQuery, StorageConfig, StorageFactory, Updated
from tetrapod.machinery.fieldmanager.manager import FieldManager
from tetrapod.machinery.gvk import GroupResource, GroupVersionKind, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.types import definitions as types

QUOTAS: Final = StorageConfig("resourcequotas", "v1", "ResourceQuota")
_KIND: Final = GroupVersionKind("", "v1", "ResourceQuota")
_MANAGER: Final = "kube-apiserver"
"""Who owns what is used: upstream charges through a client of its own."""


class Limited(Protocol):
    """What may be used only where a quota counts it."""

    def uncovered(self, resource: GroupResource, used: Usage, counted: Iterable[str]) -> str:
        """What the object uses that no quota counts though one must: names, comma-separated."""
        ...

    def uncovered_scopes(self, resource: GroupResource, obj: Object, quotas: Iterable[Object]) -> str:
        """The scopes that it is in without a quota for any such, as Go prints them; "" where there are none."""
        ...


class ResourceQuota(Plugin):
    name = "ResourceQuota"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(self, storages: StorageFactory, evaluator: Evaluator | None = None, limited: Limited | None = None) -> None:
        """`evaluator`: of the kinds that are served here, by default one that counts them; `limited`: what is configured to be used only
        under a quota."""
        self._limited = limited
        self._evaluator = evaluator or ObjectCounts()
        self._quotas = storages.resource(QUOTAS)

    @cached_property
    def _fields(self) -> FieldManager:
        return FieldManager(_KIND, lambda _: types.schema_for(_KIND), None, subresource="status")

    def handles(self, attributes: Attributes) -> bool:
        if not attributes.namespace or attributes.kind.kind == "Namespace":
            return False
        if attributes.operation == "CREATE":
            return not attributes.subresource
        return self._evaluator.updates(attributes)

    async def validate(self, attributes: Attributes) -> None:
        page = await self._quotas.list(ListQuery(f"{attributes.namespace}/", resource_version="0"))
        if not page.entries and self._limited is None:
            return
        change = await self._evaluator.change(attributes)
        if change is None:
            return
        concerned = [entry for entry in page.entries if self._concerns(attributes, change, entry.peek())]
        deltas = {entry.key: delta for entry in concerned if (delta := change.delta(entry.peek()))}
        if self._limited is not None and (deltas if concerned else change.alone):
            self._check_limited(attributes, change, self._limited, [entry.peek() for entry in page.entries])
        for entry in concerned:
            if entry.key in deltas and (why := exceeded(entry.peek(), deltas[entry.key])):
                raise forbidden(attributes, why)
        if attributes.dry_run:
            return
        for key, delta in deltas.items():
            await self._charge(attributes, key, delta)

    def _concerns(self, attributes: Attributes, change: Change, quota: Object) -> bool:
        """Whether the quota is about the object, which must say then what it needs; what it uses is another question."""
        names = change.names(quota)
        if not names:
            return False
        if missing := change.unspecified(names):
            raise forbidden(attributes, f"failed quota: {quota['metadata']['name']}: must specify {missing}")
        if why := uncounted(quota, names):
            raise forbidden(attributes, why)
        return True

    def _check_limited(self, attributes: Attributes, change: Change, limited: Limited, quotas: list[Object]) -> None:
        counted = {name for quota in quotas for name in change.names(quota)}
        if missing := limited.uncovered(change.resource, change.used, counted):
            raise forbidden(attributes, f"insufficient quota to consume: {missing}")
        if scopes := limited.uncovered_scopes(change.resource, change.new, quotas):
            raise StatusError(500, "", f"insufficient quota to match these scopes: {scopes}")

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
            return Updated(self._fields.update(current, charge, _MANAGER))

        try:
            await self._quotas.guaranteed_update(key, attempt)
        except KeyNotFound:
            return  # a quota that has gone limits nothing
