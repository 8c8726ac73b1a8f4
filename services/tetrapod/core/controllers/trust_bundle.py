"""The controller that publishes the CA of the API server as a ClusterTrustBundle.

Pods read it from a projected volume, by the signer `kubernetes.io/kube-apiserver-serving`. The name of the bundle
contains a hash of the CA, and bundles of former CAs are deleted.

Upstream: pkg/controller/certificates/clustertrustbundlepublisher/publisher.go.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

BUNDLES: Final = GroupVersionResource("certificates.k8s.io", "v1", "clustertrustbundles")
SIGNER: Final = "kubernetes.io/kube-apiserver-serving"


def bundle_name(ca: str) -> str:
    """Return the name of the ClusterTrustBundle that contains the CA of the API server; it includes a hash of the CA.

    Args:
        ca: the PEM bundle.
    """
    return f"{SIGNER.replace('/', ':')}:{hashlib.sha256(ca.encode()).hexdigest()[:24]}"


class TrustBundlePublisher:
    """The controller that creates and restores the ClusterTrustBundle of the API server's CA.

    Args:
        client: sends the requests of the controller.
        ca: the PEM bundle to publish. If it is empty, the controller does nothing, as upstream.
    """

    name = "kube-apiserver-serving-clustertrustbundle-publisher-controller"

    def __init__(self, client: Client, ca: str) -> None:
        self._client = client
        self._ca = ca
        self._bundles = Informer(client, BUNDLES, field_selector=f"spec.signerName={SIGNER}")
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._bundles.handlers.append(self._on_bundle)

    async def run(self) -> None:
        """Create, restore and delete ClusterTrustBundles of the signer until cancelled.

        The bundle of the CA is kept as it must be. All other bundles of the signer are deleted.
        """
        if not self._ca:
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._bundles.run())
            await self._bundles.synced.wait()
            self._queue.add(bundle_name(self._ca))
            group.create_task(self._queue.run())

    def _on_bundle(self, old: Object | None, new: Object | None) -> None:
        self._queue.add(bundle_name(self._ca))

    async def _sync(self, name: str) -> None:
        stored = self._bundles.get("", name)
        if stored is None:
            await self._client.create(BUNDLES, "", self._wanted(name))
        elif stored["spec"].get("trustBundle") != self._ca:
            changed = {**stored, "spec": {**stored["spec"], "trustBundle": self._ca}}
            await self._client.update(BUNDLES, "", changed)
        for _, former in list(self._bundles.objects):
            if former != name:
                await self._delete(former)

    async def _delete(self, name: str) -> None:
        try:
            await self._client.delete(BUNDLES, "", name)
        except StatusError as error:
            if error.code != 404:
                raise

    def _wanted(self, name: str) -> Object:
        spec = {"signerName": SIGNER, "trustBundle": self._ca}
        return {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "ClusterTrustBundle",
            "metadata": {"name": name},
            "spec": spec,
        }
