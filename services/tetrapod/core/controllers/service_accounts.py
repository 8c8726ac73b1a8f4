"""The controller that creates the service account `default` in every active namespace.

Upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
SERVICE_ACCOUNTS: Final = GroupVersionResource("", "v1", "serviceaccounts")


class ServiceAccountController:
    """The controller that creates the service account `default` in active namespaces, and again after its deletion.

    Args:
        namespaces: an informer of all Namespaces that other controllers use too; the caller runs it.
    """

    name = "serviceaccount-controller"

    def __init__(self, client: Client, namespaces: Informer) -> None:
        self._client = client
        self._namespaces = namespaces
        self._accounts = Informer(client, SERVICE_ACCOUNTS, field_selector="metadata.name=default")
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._namespaces.handlers.append(self._on_namespace)
        self._accounts.handlers.append(self._on_account)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._accounts.run())
            await self._accounts.synced.wait()
            await self._namespaces.synced.wait()
            group.create_task(self._queue.run(2))

    def _on_namespace(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._queue.add(new["metadata"]["name"])

    def _on_account(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._queue.add(old["metadata"]["namespace"])

    async def _sync(self, namespace: str) -> None:
        stored_namespace = self._namespaces.get("", namespace)
        if stored_namespace is None or (stored_namespace.get("status") or {}).get("phase") != "Active":
            return
        if self._accounts.get(namespace, "default") is not None:
            return
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": namespace},
        }
        await create_quietly(self._client, SERVICE_ACCOUNTS, namespace, account)


async def create_quietly(client: Client, gvr: GroupVersionResource, namespace: str, obj: Object) -> None:
    """Create the object; do nothing if it exists already or its namespace is terminating.

    Raises:
        StatusError: the write failed for another reason.
    """
    try:
        await client.create(gvr, namespace, obj)
    except StatusError as error:
        terminating = any(c.get("reason") == "NamespaceTerminating" for c in (error.details or {}).get("causes") or ())
        if error.reason != "AlreadyExists" and not terminating:
            raise
