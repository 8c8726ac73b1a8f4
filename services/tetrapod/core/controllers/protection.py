"""Controllers that keep PersistentVolumes, PersistentVolumeClaims and PodGroups from being removed while they are used.

Admission adds a finalizer to every new one. The controllers remove it from objects that are being deleted and that no
pod (or no claim) uses any more. Volumes and claims that lost it otherwise get it again. The claim controller also
reports in the status of bound claims whether a pod refers to them.
Upstream: pkg/controller/volume/{pvcprotection,pvprotection} and scheduling/podgroupprotection.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339

PODS: Final = GroupVersionResource("", "v1", "pods")
CLAIMS: Final = GroupVersionResource("", "v1", "persistentvolumeclaims")
VOLUMES: Final = GroupVersionResource("", "v1", "persistentvolumes")
POD_GROUPS: Final = GroupVersionResource("scheduling.k8s.io", "v1beta1", "podgroups")
_CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
_VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
_POD_GROUP_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
_ENDED: Final = ("Succeeded", "Failed")
_USE: Final = {
    False: {"reason": "NoPodsUsingPVC", "message": "No pods are currently referencing this PVC"},
    True: {"reason": "PodUsingPVC", "message": "A pod is currently referencing this PVC"},
}


class ClaimProtection:
    """The controller that removes the protection finalizer of deleted PersistentVolumeClaims once no pod uses them.

    Claims that are not being deleted get the finalizer if they lack it, and the condition Unused if they are bound.
    """

    name = "persistentvolumeclaim-protection-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._claims = Informer(client, CLAIMS)
        self._pods = Informer(client, PODS, transform=_with_claims_only)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(self.name, self._sync)
        self._claims.handlers.append(self._on_claim)
        self._pods.handlers.append(self._on_pod)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claims.run())
            group.create_task(self._pods.run())
            await self._claims.synced.wait()
            await self._pods.synced.wait()
            group.create_task(self._queue.run())

    def _on_claim(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (_is_deleted(new) or _bound(new) or _lacks_finalizer(new, _CLAIM_FINALIZER)):
            self._queue.add((new["metadata"]["namespace"], new["metadata"]["name"]))

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        for name in claims_of(pod):
            self._queue.add((pod["metadata"]["namespace"], name))

    async def _sync(self, key: tuple[str, str]) -> None:
        claim = self._claims.get(*key)
        if claim is None:
            return
        if not _is_deleted(claim):
            await self._report_use(key, claim)
            await _add_finalizer(self._client, CLAIMS, claim, _CLAIM_FINALIZER)
            return
        if await self._used(*key):
            return
        await drop_finalizer(self._client, CLAIMS, claim, _CLAIM_FINALIZER)

    async def _report_use(self, key: tuple[str, str], claim: Object) -> None:
        """Set the condition Unused of a bound claim: False if a pod that has not ended refers to it, else True.

        A claim that has always been used gets no condition.

        Args:
            key: the namespace and the name of the claim.
            claim: the claim.
        """
        if not _bound(claim):
            return
        namespace, name = key
        pods = (pod for (pod_namespace, _), pod in self._pods.objects.items() if pod_namespace == namespace)
        used = any(not _ended(pod) and name in claims_of(pod) for pod in pods)
        conditions = (claim.get("status") or {}).get("conditions") or []
        existing = next((c for c in conditions if c.get("type") == "Unused"), None)
        expected = "False" if used else "True"
        if (existing is None and used) or (existing is not None and existing.get("status") == expected):
            return
        condition = {
            "type": "Unused",
            "status": expected,
            "lastProbeTime": None,
            "lastTransitionTime": now_rfc3339(),
            **_USE[used],
        }
        status = {"conditions": [*(c for c in conditions if c is not existing), condition]}
        patch = {"metadata": {key: claim["metadata"][key] for key in ("uid", "resourceVersion")}, "status": status}
        try:
            await self._client.patch(CLAIMS, namespace, name, patch, subresource="status")
        except StatusError as error:
            if error.code != 404:
                raise

    async def _used(self, namespace: str, name: str) -> bool:
        """Return whether a pod that is assigned to a node and has not finished uses the claim.

        If no pod in the informer does, pods are listed live, because a pod can be newer than the informer's cache. An
        error of that request is raised, so that the finalizer stays.

        Args:
            namespace: the namespace of the claim.
            name: the name of the claim.
        """
        cached = [pod for (pod_namespace, _), pod in self._pods.objects.items() if pod_namespace == namespace]
        if any(_runs(pod) and name in claims_of(pod) for pod in cached):
            return True
        live = (await self._client.list(PODS, namespace)).get("items") or ()
        return any(_runs(pod) and name in claims_of(pod) for pod in live)


class VolumeProtection:
    """The controller that removes the protection finalizer of PersistentVolumes that are being deleted.

    It keeps the finalizer of bound ones, and adds it to those that are not being deleted and lack it.
    """

    name = "persistentvolume-protection-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._volumes = Informer(client, VOLUMES)
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._volumes.handlers.append(self._on_volume)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._volumes.run())
            await self._volumes.synced.wait()
            group.create_task(self._queue.run())

    def _on_volume(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (_is_deleted(new) or _lacks_finalizer(new, _VOLUME_FINALIZER)):
            self._queue.add(new["metadata"]["name"])

    async def _sync(self, name: str) -> None:
        volume = self._volumes.get("", name)
        if volume is None:
            return
        if not _is_deleted(volume):
            await _add_finalizer(self._client, VOLUMES, volume, _VOLUME_FINALIZER)
        elif not _bound(volume):
            await drop_finalizer(self._client, VOLUMES, volume, _VOLUME_FINALIZER)


class PodGroupProtection:
    """The controller that removes the protection finalizer of deleted PodGroups once all their pods have ended."""

    name = "podgroup-protection-controller"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._groups = Informer(client, POD_GROUPS)
        self._pods = Informer(client, PODS, transform=_with_group_only)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(self.name, self._sync)
        self._groups.handlers.append(self._on_group)
        self._pods.handlers.append(self._on_pod)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._groups.run())
            group.create_task(self._pods.run())
            await self._groups.synced.wait()
            await self._pods.synced.wait()
            group.create_task(self._queue.run())

    def _on_group(self, old: Object | None, new: Object | None) -> None:
        if new is not None and _is_deleted(new):
            self._queue.add((new["metadata"]["namespace"], new["metadata"]["name"]))

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        for pod in (old, new):
            if pod is not None and (name := _group_of(pod)):
                self._queue.add((pod["metadata"]["namespace"], name))

    async def _sync(self, key: tuple[str, str]) -> None:
        pod_group = self._groups.get(*key)
        if pod_group is None or not _is_deleted(pod_group):
            return
        namespace, name = key
        pods = (pod for (pod_namespace, _), pod in self._pods.objects.items() if pod_namespace == namespace)
        if not any(_group_of(pod) == name and not _ended(pod) for pod in pods):
            await drop_finalizer(self._client, POD_GROUPS, pod_group, _POD_GROUP_FINALIZER)


def _group_of(pod: Object) -> str:
    """Return the name of the PodGroup of a pod, "" if it has none."""
    return ((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName") or ""


def _with_group_only(pod: Object) -> Object:
    """Return a pod with only the fields that `PodGroupProtection` needs."""
    spec = {"schedulingGroup": {"podGroupName": _group_of(pod)}}
    return {"metadata": _identity(pod), "spec": spec, "status": {"phase": (pod.get("status") or {}).get("phase")}}


def _identity(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {name: metadata[name] for name in ("name", "namespace", "resourceVersion") if name in metadata}


def claims_of(pod: Object) -> set[str]:
    """Return the names of the PersistentVolumeClaims of a pod's volumes, generic ephemeral volumes included."""
    names = set()
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            names.add(claim.get("claimName", ""))
        elif volume.get("ephemeral"):
            names.add(f"{pod['metadata']['name']}-{volume['name']}")
    return names


def _with_claims_only(pod: Object) -> Object:
    """Return a pod with only the fields that this module needs.

    There may be very many pods, so the informer keeps nothing else.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    volumes = [
        volume for volume in spec.get("volumes") or () if volume.get("persistentVolumeClaim") or volume.get("ephemeral")
    ]
    return {
        "metadata": _identity(pod),
        "spec": {"nodeName": spec.get("nodeName"), "volumes": volumes},
        "status": {"phase": status.get("phase")},
    }


def _runs(pod: Object) -> bool:
    """Return whether the pod is assigned to a node and has not finished, so that it uses its volumes."""
    return bool((pod.get("spec") or {}).get("nodeName")) and not _ended(pod)


def _ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in _ENDED


def _bound(obj: Object) -> bool:
    return (obj.get("status") or {}).get("phase") == "Bound"


def _is_deleted(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def _lacks_finalizer(obj: Object, finalizer: str) -> bool:
    """Return whether the object should have the finalizer: it is not being deleted and does not have it."""
    return not _is_deleted(obj) and finalizer not in (obj["metadata"].get("finalizers") or ())


async def _add_finalizer(client: Client, gvr: GroupVersionResource, obj: Object, finalizer: str) -> None:
    """Append the finalizer to those of an object that is not being deleted, if it lacks it.

    Raises:
        StatusError: 409, the object has changed since it was read, and other errors.
    """
    if _lacks_finalizer(obj, finalizer):
        await _patch_finalizers(client, gvr, obj, [*(obj["metadata"].get("finalizers") or ()), finalizer])


async def drop_finalizer(client: Client, gvr: GroupVersionResource, obj: Object, finalizer: str) -> None:
    """Remove a finalizer from the object by a patch. Do nothing if it does not have the finalizer or is gone.

    Raises:
        StatusError: 409, the object has changed since it was read, and other errors.
    """
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer in finalizers:
        await _patch_finalizers(client, gvr, obj, [f for f in finalizers if f != finalizer])


async def _patch_finalizers(client: Client, gvr: GroupVersionResource, obj: Object, finalizers: list[str]) -> None:
    """Replace the finalizers of the object. Do nothing if it is gone.

    Raises:
        StatusError: 409, the object has changed since it was read, and other errors.
    """
    meta = obj["metadata"]
    identity = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    patch = {"metadata": {**identity, "finalizers": finalizers or None}}
    try:
        await client.patch(gvr, meta.get("namespace", ""), meta["name"], patch)
    except StatusError as error:
        if error.code != 404:
            raise
