"""The controller that recalculates `status` of ResourceQuotas after a changed limit, a deletion or the end of a pod.

Admission charges new objects; this controller recounts when usage decreases. It watches only resources that some quota
limits.
Upstream: pkg/controller/resourcequota.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from tetrapod.core.controllers.discovered import discover
from tetrapod.core.quota.claim_context import claim_context
from tetrapod.core.quota.devices import ALONE, CLAIMS, NO_NAMES, REQUESTS, ClaimContext, Extended
from tetrapod.core.quota.replenishing import may_decrease_usage
from tetrapod.core.quota.scopes import in_scope
from tetrapod.core.quota.usage import counted_fields, counted_names, tracked, usage_of
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import pages
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupResource, GroupVersionResource, Object
from tetrapod.machinery.quantity import Quantity
from tetrapod.machinery.status import StatusError

QUOTAS: Final = GroupVersionResource("", "v1", "resourcequotas")
_PODS: Final = GroupVersionResource("", "v1", "pods")
_CLASSES: Final = GroupVersionResource("resource.k8s.io", "v1", "deviceclasses")
_CLAIMS: Final = GroupVersionResource("resource.k8s.io", "v1", "resourceclaims")
_RESYNC: Final = 300.0
_RETRY: Final = 5.0
"""Seconds between attempts to count resources that quotas limit and that no server serves yet (upstream: rediscovery
every 30 seconds).
"""
_ZERO: Final = Quantity.from_int(0)
_SETTLE: Final = 0.1  # seconds; by then a write that was charged just before is stored


class ResourceQuotaController:
    """The controller of ResourceQuota status.

    It recalculates the usage of a quota when its spec changes and when objects in its namespace may use less than
    before. It recalculates all quotas every 300 seconds.
    """

    name = "resourcequota-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._quotas = Informer(client, QUOTAS)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(self.name, self._sync)
        self._watched: dict[GroupResource, GroupVersionResource | None] = {}
        self._group: asyncio.TaskGroup | None = None
        self._quotas.handlers.append(self._on_quota)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._quotas.run())
            await self._quotas.synced.wait()
            group.create_task(self._queue.run(5))
            due = time.monotonic() + _RESYNC
            while True:
                await asyncio.sleep(_RETRY)
                late = time.monotonic() >= due
                for key, quota in self._quotas.objects.items():
                    if late or self._awaits_resource(quota):
                        self._queue.add(key)
                due = time.monotonic() + _RESYNC if late else due

    def _on_quota(self, old: Object | None, new: Object | None) -> None:
        """Queue a quota that is new or whose limits have changed. A status that a user has written stays for now."""
        if new is not None and (old is None or _limits(old) != _limits(new)):
            self._queue.add((new["metadata"]["namespace"], new["metadata"]["name"]))

    def _awaits_resource(self, quota: Object) -> bool:
        """Return whether status.used lacks a resource that no server has served yet."""
        return not _is_counted(quota) and any(
            self._watched.get(resource) is None for resource in tracked(_limits(quota))
        )

    def _on_object(self, resource: GroupResource) -> Any:
        """Return an informer's handler for objects of this resource.

        It queues all quotas of the object's namespace that limit the resource, if the event can decrease their usage.
        """

        def changed(old: Object | None, new: Object | None) -> None:
            if new is not None and (old is None or not may_decrease_usage(resource, old, new)):
                return
            namespace = (old or new or {})["metadata"].get("namespace", "")
            for key, quota in self._quotas.objects.items():
                if key[0] == namespace and _limits_resource(quota, resource):
                    self._queue.add_after(key, _SETTLE)

        return changed

    async def _watch(self, resource: GroupResource) -> GroupVersionResource | None:
        """Watch a resource that a quota limits, unless it is watched already, and return its GVR.

        Returns:
            None if no server serves it in namespaces; the next call looks again.

        Raises:
            Unavailable: discovery did not respond.
        """
        if self._watched.get(resource) is None:
            discovered = await discover(self._client)
            gvr = next(
                (
                    r.gvr
                    for r in discovered.resources
                    if r.preferred and r.gvr.group_resource == resource and r.namespaced
                ),
                None,
            )
            self._watched[resource] = gvr
            if gvr is not None and self._group is not None:
                informer = Informer(self._client, gvr, only=counted_fields(resource))
                informer.handlers.append(self._on_object(resource))
                self._group.create_task(informer.run())
        return self._watched[resource]

    async def _sync(self, key: tuple[str, str]) -> None:
        namespace, name = key
        try:
            quota = await self._client.get(QUOTAS, namespace, name)
        except StatusError as error:
            if error.code == 404:
                return
            raise
        hard = _limits(quota)
        former = (quota.get("status") or {}).get("used") or {}
        used = {name: former[name] for name in hard if name in former} | await self._used(quota, namespace, hard)
        status = {"hard": hard, "used": used} if hard else {}
        if (quota.get("status") or {}) != status:
            await self._client.update(QUOTAS, namespace, {**quota, "status": status}, subresource="status")

    async def _used(self, quota: Object, namespace: str, hard: Object) -> dict[str, str]:
        """Count the objects in the quota's namespace and scopes, and return status.used.

        Names of resources that no server serves are left out, so that admission rejects writes of them until they are
        counted.

        Args:
            hard: spec.hard of the quota.

        Raises:
            StatusError: the server rejected to list objects.
            Unavailable: the server cannot be reached.
        """
        totals: dict[str, Quantity] = {}
        lookups = _Lookups(self._client)
        names = (
            Extended.of(await lookups.classes())
            if any(name.startswith(REQUESTS) and "/" in name for name in hard)
            else NO_NAMES
        )
        for resource in tracked(hard, names):
            gvr = await self._watch(resource)
            if gvr is None:
                continue
            totals |= {name: _ZERO for name in counted_names(resource, hard, ClaimContext(names)) if name not in totals}
            async for page in pages(self._client, gvr, namespace, only=counted_fields(resource)):
                for item in page.get("items") or ():
                    if in_scope(quota, resource, item):
                        context = await claim_context(item, lookups) if resource == CLAIMS else ALONE
                        for name, quantity in usage_of(resource, item, context).items():
                            if name in totals:
                                totals[name] = totals[name] + quantity
        return {name: str(total) for name, total in totals.items()}


def _limits(quota: Object) -> Object:
    return (quota.get("spec") or {}).get("hard") or {}


def _limits_resource(quota: Object, resource: GroupResource) -> bool:
    """Return whether status.hard may limit a resource. Claims are limited by the names of device classes too."""
    hard = (quota.get("status") or {}).get("hard") or {}
    return resource == CLAIMS or resource in tracked(hard)


def _is_counted(quota: Object) -> bool:
    """Return whether status.used has an entry for each name in spec.hard."""
    return ((quota.get("status") or {}).get("used") or {}).keys() >= _limits(quota).keys()


class _Lookups:
    """Reads of the objects that determine the usage of ResourceClaims, for one recalculation of a quota.

    Device classes and claims are listed at most once. It implements `ClaimLookups`.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._classes: list[Object] | None = None
        self._claims: list[Object] | None = None

    async def classes(self) -> list[Object]:
        """Return all DeviceClasses, or [] if resource.k8s.io is not served. Other errors are raised."""
        if self._classes is None:
            self._classes = await self._items(_CLASSES)
        return self._classes

    async def claims(self, namespace: str) -> list[Object]:
        """Return all ResourceClaims of the namespace, or [] if resource.k8s.io is not served. Other errors are raised.

        All calls must name the same namespace.
        """
        if self._claims is None:
            self._claims = await self._items(_CLAIMS, namespace)
        return self._claims

    async def pod(self, namespace: str, name: str) -> Object | None:
        """Return the pod, or None if it does not exist (404). Other errors are raised."""
        try:
            return await self._client.get(_PODS, namespace, name)
        except StatusError as error:
            if error.code == 404:
                return None
            raise

    async def _items(self, gvr: GroupVersionResource, namespace: str = "") -> list[Object]:
        try:
            return (await self._client.list(gvr, namespace)).get("items") or []
        except StatusError as error:
            if error.code == 404:  # the server does not serve resource.k8s.io
                return []
            raise
