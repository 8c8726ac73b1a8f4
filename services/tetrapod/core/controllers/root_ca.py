"""The controller that publishes the ConfigMap `kube-root-ca.crt` in every namespace.

Upstream: pkg/controller/certificates/rootcacertpublisher/publisher.go.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.core.controllers.service_accounts import create_quietly
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object

CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
NAME: Final = "kube-root-ca.crt"
_ANNOTATION: Final = "kubernetes.io/description"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class RootCAPublisher:
    """The controller that creates and restores the ConfigMap `kube-root-ca.crt` in every active namespace.

    Args:
        namespaces: an informer of all Namespaces that other controllers use too; the caller runs it.
        ca: the PEM bundle to publish.
    """

    name = "root-ca-certificate-publisher-controller"

    def __init__(self, client: Client, namespaces: Informer, ca: str) -> None:
        self._client = client
        self._namespaces = namespaces
        self._ca = ca
        self._maps = Informer(client, CONFIG_MAPS, field_selector=f"metadata.name={NAME}")
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._namespaces.handlers.append(self._on_namespace)
        self._maps.handlers.append(self._on_map)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._maps.run())
            await self._maps.synced.wait()
            await self._namespaces.synced.wait()
            group.create_task(self._queue.run(2))

    def _on_namespace(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._queue.add(new["metadata"]["name"])

    def _on_map(self, old: Object | None, new: Object | None) -> None:
        changed = new or old
        if changed is not None and (new is None or not self._is_current(new)):
            self._queue.add(changed["metadata"]["namespace"])

    async def _sync(self, namespace: str) -> None:
        stored_namespace = self._namespaces.get("", namespace)
        if stored_namespace is None or (stored_namespace.get("status") or {}).get("phase") != "Active":
            return
        stored = self._maps.get(namespace, NAME)
        if stored is None:
            await create_quietly(self._client, CONFIG_MAPS, namespace, self._wanted(namespace))
        elif not self._is_current(stored):
            annotations = {**(stored["metadata"].get("annotations") or {}), _ANNOTATION: _DESCRIPTION}
            restored = {
                **stored,
                "metadata": {**stored["metadata"], "annotations": annotations},
                "data": {"ca.crt": self._ca},
            }
            await self._client.update(CONFIG_MAPS, namespace, restored)

    def _is_current(self, config_map: Object) -> bool:
        """Return whether the ConfigMap has the CA as its only data, and any description."""
        description = (config_map["metadata"].get("annotations") or {}).get(_ANNOTATION)
        return config_map.get("data") == {"ca.crt": self._ca} and bool(description)

    def _wanted(self, namespace: str) -> Object:
        metadata = {"name": NAME, "namespace": namespace, "annotations": {_ANNOTATION: _DESCRIPTION}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": self._ca}}
