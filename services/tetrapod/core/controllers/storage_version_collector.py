"""The controller that removes the entries of API servers without an identity Lease from StorageVersions.

A StorageVersion without any other entry is deleted. Here each service that runs as a separate process is a server, with
a Lease that has another value of the identity label than `kube-apiserver`.
Upstream: pkg/controller/storageversiongc/gc_controller.go
"""

from __future__ import annotations

import asyncio

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import get_or_none
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.generic.server.kubernetes_service.identity import LABEL, LEASES, NAMESPACE
from tetrapod.generic.server.storage_versions import STORAGE_VERSIONS, set_common_version
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError


class StorageVersionCollector:
    """The controller that keeps StorageVersions free of entries of servers that are gone.

    Args:
        client: reads identity Leases, and writes StorageVersions.
    """

    name = "storageversion-garbage-collector-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._leases = Informer(client, LEASES, NAMESPACE, label_selector=LABEL)
        self._versions = Informer(client, STORAGE_VERSIONS)
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._leases.handlers.append(self._on_lease)
        self._versions.handlers.append(self._on_version)

    async def run(self) -> None:
        """Follow identity Leases and StorageVersions until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leases.run())
            await self._leases.synced.wait()
            group.create_task(self._versions.run())
            await self._versions.synced.wait()
            group.create_task(self._queue.run())

    def _on_lease(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            server = old["metadata"]["name"]
            for (_, name), version in self._versions.objects.items():
                if any(report.get("apiServerID") == server for report in _reports(version)):
                    self._queue.add(name)

    def _on_version(self, old: Object | None, new: Object | None) -> None:
        if new is not None and any(self._leases.get(NAMESPACE, _server(report)) is None for report in _reports(new)):
            self._queue.add(new["metadata"]["name"])

    async def _sync(self, name: str) -> None:
        """Remove the entries of servers without an identity Lease from one StorageVersion.

        The Leases are read from the server, because the informer may be behind.

        Raises:
            StatusError, Unavailable: a request failed. The work queue tries again.
        """
        stored = await get_or_none(self._client, STORAGE_VERSIONS, "", name)
        if stored is None:
            return
        reports = _reports(stored)
        kept = [report for report in reports if await self._is_present(_server(report))]
        if len(kept) == len(reports):
            return
        if not kept:
            conditions = {"uid": stored["metadata"]["uid"], "resourceVersion": stored["metadata"]["resourceVersion"]}
            await self._client.delete(STORAGE_VERSIONS, "", name, {"preconditions": conditions})
            return
        updated = copy_object(stored)
        updated["status"]["storageVersions"] = kept
        set_common_version(updated)
        await self._client.update(STORAGE_VERSIONS, "", updated, subresource="status")

    async def _is_present(self, server: str) -> bool:
        try:
            lease = await self._client.get(LEASES, NAMESPACE, server)
        except StatusError as error:
            if error.code != 404:
                raise
            return False
        return LABEL in (lease["metadata"].get("labels") or {})


def _reports(version: Object) -> list[Object]:
    return (version.get("status") or {}).get("storageVersions") or []


def _server(report: Object) -> str:
    return str(report.get("apiServerID") or "")
