"""Keeps `status` of resource quotas true (upstream: pkg/controller/resourcequota): a new limit, an object gone, a pod ended.

Admission charges what is created; this counts anew when something goes. Only resources that some quota names are watched.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from tetrapod.core.controllers.discovered import discover
from tetrapod.core.quota.devices import ALONE, CLAIMS, NO_NAMES, REQUESTS, Extended, Surroundings
from tetrapod.core.quota.replenishing import gives_back
from tetrapod.core.quota.scopes import in_scope
from tetrapod.core.quota.surroundings import around
from tetrapod.core.quota.usage import concerning, tracked, usage_of
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupResource, GroupVersionResource, Object
from tetrapod.machinery.quantity import Quantity
from tetrapod.machinery.status import StatusError

QUOTAS: Final = GroupVersionResource("", "v1", "resourcequotas")
_PODS: Final = GroupVersionResource("", "v1", "pods")
_CLASSES: Final = GroupVersionResource("resource.k8s.io", "v1", "deviceclasses")
_CLAIMS: Final = GroupVersionResource("resource.k8s.io", "v1", "resourceclaims")
_RESYNC: Final = 300.0
_LOOK_AGAIN: Final = 5.0
"""For resources that quotas name and nobody serves yet (upstream: the controller's discovery, every 30 seconds)."""
_ZERO: Final = Quantity.from_int(0)
_SETTLE: Final = 0.1  # a write that was charged a moment ago is stored by then


class ResourceQuotaController:
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
                await asyncio.sleep(_LOOK_AGAIN)
                late = time.monotonic() >= due
                for key, quota in self._quotas.objects.items():
                    if late or not _is_counted(quota):
                        self._queue.add(key)
                due = time.monotonic() + _RESYNC if late else due

    def _on_quota(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            return
        if old is None or old.get("spec") != new.get("spec") or (new.get("status") or {}).get("hard") != new["spec"].get("hard"):
            self._queue.add((new["metadata"]["namespace"], new["metadata"]["name"]))

    def _on_object(self, resource: GroupResource) -> Any:
        def changed(old: Object | None, new: Object | None) -> None:
            if new is not None and (old is None or not gives_back(resource, old, new)):
                return
            namespace = (old or new or {})["metadata"].get("namespace", "")
            for where, name in self._quotas.objects:
                if where == namespace:
                    self._queue.add_after((where, name), _SETTLE)

        return changed

    async def _watch(self, resource: GroupResource) -> GroupVersionResource | None:
        """Begin to watch a resource that a quota names; None where nobody serves it."""
        if self._watched.get(resource) is None:
            found = await discover(self._client)
            gvr = next((r.gvr for r in found.resources if r.preferred and r.gvr.group_resource == resource and r.namespaced), None)
            self._watched[resource] = gvr
            if gvr is not None and self._group is not None:
                informer = Informer(self._client, gvr)
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
        hard = (quota.get("spec") or {}).get("hard") or {}
        used = await self._used(quota, namespace, hard)
        status = {"hard": hard, "used": used} if hard else {}
        if (quota.get("status") or {}) != status:
            await self._client.update(QUOTAS, namespace, {**quota, "status": status}, subresource="status")

    async def _used(self, quota: Object, namespace: str, hard: Object) -> dict[str, str]:
        """Of what nobody serves nothing is said: writes of it are refused until it is counted."""
        totals: dict[str, Quantity] = {}
        look = _Look(self._client)
        names = Extended.of(await look.classes()) if any(name.startswith(REQUESTS) and "/" in name for name in hard) else NO_NAMES
        for resource in tracked(hard, names):
            gvr = await self._watch(resource)
            if gvr is None:
                continue
            totals |= {name: _ZERO for name in concerning(resource, hard, Surroundings(names)) if name not in totals}
            for item in (await self._client.list(gvr, namespace)).get("items") or ():
                if in_scope(quota, resource, item):
                    involved = await around(item, look) if resource == CLAIMS else ALONE
                    for name, quantity in usage_of(resource, item, involved).items():
                        if name in totals:
                            totals[name] = totals[name] + quantity
        return {name: str(total) for name, total in totals.items()}


def _is_counted(quota: Object) -> bool:
    return ((quota.get("status") or {}).get("used") or {}).keys() >= ((quota.get("spec") or {}).get("hard") or {}).keys()


class _Look:
    """For one count: classes and claims are asked for once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._classes: list[Object] | None = None
        self._claims: list[Object] | None = None

    async def classes(self) -> list[Object]:
        if self._classes is None:
            self._classes = await self._items(_CLASSES)
        return self._classes

    async def claims(self, namespace: str) -> list[Object]:
        if self._claims is None:
            self._claims = await self._items(_CLAIMS, namespace)
        return self._claims

    async def pod(self, namespace: str, name: str) -> Object | None:
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
            if error.code == 404:  # a server that does not serve the group
                return []
            raise
