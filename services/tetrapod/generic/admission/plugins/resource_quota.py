"""ResourceQuota: the last plugin; it adds the usage of a write to every matching quota, atomically for each.

It reads and updates quotas in storage in every service. If the write fails afterwards, the quota controller corrects
the usage.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, Protocol

from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden
from tetrapod.generic.admission.plugins.quota_evaluator import Change, Evaluator, ObjectCounts
from tetrapod.generic.admission.quota import UNCOUNTED, Usage, add_usage, limit_error, missing_usage_error
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.errors import KeyNotFound
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.storage.writes import Updated
from tetrapod.machinery.fieldmanager.manager import FieldManager
from tetrapod.machinery.gvk import GroupResource, GroupVersionKind, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.types import definitions as types

QUOTAS: Final = StorageConfig("resourcequotas", "v1", "ResourceQuota")
_KIND: Final = GroupVersionKind("", "v1", "ResourceQuota")
_MANAGER: Final = "kube-apiserver"
"""The field manager of usage: upstream charges quotas through a client."""


class Limited(Protocol):
    """The configured resources that may be used only if a quota limits them (upstream: limitedResources)."""

    def uncovered_resources(self, resource: GroupResource, used: Usage, counted: Iterable[str]) -> str:
        """Return the used resources that must be limited by a quota but are not.

        They are separated by commas; the result is "" if all are limited.

        Args:
            resource: the resource of the object.
            used: the usage of the object.
            counted: the names of the resources that quotas limit for this object.
        """
        ...

    def uncovered_scopes(self, resource: GroupResource, obj: Object, quotas: Iterable[Object]) -> str:
        """Return the scopes in limitedResources that select the object but that no quota in the namespace has.

        Args:
            resource: the resource of the object.
            obj: the object.
            quotas: the ResourceQuotas of the namespace.

        Returns:
            The scopes as Go prints a list, for an error text; "" if no such scope exists.
        """
        ...


class ResourceQuota(Plugin):
    """The plugin ResourceQuota, which adds the usage of a write to every matching quota or rejects the write."""

    name = "ResourceQuota"
    operations = frozenset({"CREATE", "UPDATE"})

    def __init__(
        self, storages: StorageFactory, evaluator: Evaluator | None = None, limited: Limited | None = None
    ) -> None:
        """Create the plugin.

        Args:
            storages: provides the storage of ResourceQuotas.
            evaluator: computes the usage of the kinds of this service; None counts objects.
            limited: the resources that require a quota; None if none are configured.
        """
        self._limited = limited
        self._evaluator = evaluator or ObjectCounts()
        self._quotas = Lister(storages, QUOTAS)

    @cached_property
    def _fields(self) -> FieldManager:
        return FieldManager(_KIND, lambda _: types.schema_for(_KIND), None, subresource="status")

    def handles(self, attributes: Attributes) -> bool:
        if not attributes.namespace or attributes.kind.kind == "Namespace":
            return False
        if attributes.operation == "CREATE":
            return not attributes.subresource and attributes.resource.group_resource not in UNCOUNTED
        return self._evaluator.updates(attributes)

    async def validate(self, attributes: Attributes) -> None:
        entries = await self._quotas.entries(attributes.namespace)
        if not entries and self._limited is None:
            return
        change = await self._evaluator.change(attributes)
        if change is None:
            return
        deltas = await offloaded(attributes.large, self._deltas, attributes, change, entries)
        if attributes.dry_run:
            return
        for key, delta in deltas.items():
            await self._charge(attributes, key, delta)

    def _deltas(self, attributes: Attributes, change: Change, entries: Sequence[Entry]) -> dict[str, Usage]:
        """Return the usage that the write adds to each quota, by the quota's key.

        Args:
            attributes: the request.
            change: the effect of the write.
            entries: the quotas of the namespace.

        Raises:
            StatusError: 403, the write exceeds a quota, lacks a resource that a quota requires, or uses a resource that
                needs a quota and has none.
        """
        concerned = [entry for entry in entries if self._concerns(attributes, change, entry.peek())]
        deltas = {entry.key: delta for entry in concerned if (delta := change.delta(entry.peek()))}
        if self._limited is not None and (deltas if concerned else change.alone):
            self._check_limited(attributes, change, self._limited, [entry.peek() for entry in entries])
        for entry in concerned:
            if entry.key in deltas and (reason := limit_error(entry.peek(), deltas[entry.key])):
                raise forbidden(attributes, reason)
        return deltas

    def _concerns(self, attributes: Attributes, change: Change, quota: Object) -> bool:
        """Return whether the quota limits anything that the object uses.

        Raises:
            StatusError: 403, the object does not specify a resource that the quota requires, or the quota has no usage
                yet.
        """
        names = change.names(quota)
        if not names:
            return False
        if missing := change.unspecified_resources(names):
            raise forbidden(attributes, f"failed quota: {quota['metadata']['name']}: must specify {missing}")
        if reason := missing_usage_error(quota, names):
            raise forbidden(attributes, reason)
        return True

    def _check_limited(self, attributes: Attributes, change: Change, limited: Limited, quotas: list[Object]) -> None:
        counted = {name for quota in quotas for name in change.names(quota)}
        if missing := limited.uncovered_resources(change.resource, change.used, counted):
            raise forbidden(attributes, f"insufficient quota to consume: {missing}")
        if scopes := limited.uncovered_scopes(change.resource, change.new, quotas):
            raise StatusError(500, "", f"insufficient quota to match these scopes: {scopes}")

    async def _charge(self, attributes: Attributes, key: str, delta: Usage) -> None:
        async def attempt(current: Object | None, _: Entry | None) -> Updated | None:
            if current is None:
                return None
            if reason := limit_error(current, delta):
                raise forbidden(attributes, reason)
            used = add_usage(current, delta)
            if used is None:
                return None
            charge = {**current, "status": {**current["status"], "used": used}}
            return Updated(self._fields.update(current, charge, _MANAGER))

        try:
            await self._quotas.storage.guaranteed_update(key, attempt)
        except KeyNotFound:
            return  # the quota was deleted and limits nothing
