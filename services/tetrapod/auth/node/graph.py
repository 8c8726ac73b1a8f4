"""`NodeGraph`: the objects that each node needs because of the pods that run on it, for the node authorizer.

Edges: node ← pod ← Secret, ConfigMap, claim, service account; claim ← PersistentVolume ← Secret. VolumeAttachments,
ResourceSlices and PodCertificateRequests belong to the node that they name. The graph watches storage from the first
request of a node on, so a cluster without kubelets has no cost.

Upstream: plugin/pkg/auth/authorizer/node/graph.go.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from tetrapod.auth.tokens.bound_objects import PODS
from tetrapod.generic.authorization.list_watch import StorageReflector
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.storage.watch import WatchEvent
from tetrapod.machinery.gvk import Object

VOLUMES: Final = StorageConfig(prefix="persistentvolumes", api_version="v1", kind="PersistentVolume", namespaced=False)
ATTACHMENTS: Final = StorageConfig(
    prefix="volumeattachments", api_version="storage.k8s.io/v1", kind="VolumeAttachment", namespaced=False
)
SLICES: Final = StorageConfig(
    prefix="resourceslices", api_version="resource.k8s.io/v1", kind="ResourceSlice", namespaced=False
)
CERTIFICATE_REQUESTS: Final = StorageConfig(
    prefix="podcertificaterequests", api_version="certificates.k8s.io/v1beta1", kind="PodCertificateRequest"
)
_ACTED_ON: Final = {
    PODS.prefix: "Pod",
    VOLUMES.prefix: "PV",
    ATTACHMENTS.prefix: "VolumeAttachment",
    SLICES.prefix: "ResourceSlice",
    CERTIFICATE_REQUESTS.prefix: "PodCertificateRequest",
}
_ACTIONS: Final = Histogram(
    "node_authorizer_graph_actions_duration_seconds",
    "Histogram of duration of graph actions in node authorizer.",
    ("operation",),
    tuple(0.0001 * 2**i for i in range(12)),
)
_MIRROR: Final = "kubernetes.io/config.mirror"


class Vertex(NamedTuple):
    """An object of the graph.

    Attributes:
        kind: the plural name of its resource, such as "secrets".
        namespace: its namespace; "" for a cluster-scoped object.
        name: its name.
    """

    kind: str
    namespace: str
    name: str


class NodeGraph:
    """The objects that each node needs, for the node authorizer, which lets a kubelet read only these.

    An edge leads from an object, such as a Secret, to a node on which a pod uses it. The graph is kept up to date by
    watching storage.
    """

    def __init__(self, storage: StorageFactory) -> None:
        self._storage = storage
        self._reflectors: list[StorageReflector] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._edges: dict[Vertex, Counter[str]] = {}  # to nodes; the count is the number of pods that make the edge
        self._of: dict[
            Vertex, tuple[str, frozenset[Vertex]]
        ] = {}  # the edges of each pod, or of each object that names its node
        self._claim_of: dict[str, Vertex] = {}  # volume → claim
        self._volume_secrets: dict[str, frozenset[Vertex]] = {}
        self._volumes_of_secret: dict[Vertex, set[str]] = {}

    async def ready(self) -> None:
        """Start watching storage at the first call, and return when all resources have been listed."""
        if not self._reflectors:
            readers = (
                (PODS, _read_pod),
                (ATTACHMENTS, _read_node),
                (SLICES, _read_node),
                (CERTIFICATE_REQUESTS, _read_node),
            )
            followers = [(config, _Contributions(self, config.prefix, read)) for config, read in readers]
            self._reflectors = [
                StorageReflector(self._storage.resource(config), follower) for config, follower in followers
            ]
            self._reflectors.append(StorageReflector(self._storage.resource(VOLUMES), _Volumes(self)))
            self._tasks = [asyncio.create_task(reflector.run(), name="node-graph") for reflector in self._reflectors]
        for reflector in self._reflectors:
            if not reflector.synced.is_set():
                await reflector.synced.wait()

    async def close(self) -> None:
        """Stop watching storage, and wait until the watches have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def related(self, node: str, vertex: Vertex) -> bool:
        """Return whether the node needs the object, by its pods or because the object names the node.

        Args:
            node: the name of the node.
        """
        if self._reaches(vertex, node):
            return True
        if vertex.kind == "persistentvolumes":
            claim = self._claim_of.get(vertex.name)
            return claim is not None and self._reaches(claim, node)
        if vertex.kind == "secrets":
            volumes = self._volumes_of_secret.get(vertex, ())
            return any(self.related(node, Vertex("persistentvolumes", "", volume)) for volume in volumes)
        return False

    def _reaches(self, vertex: Vertex, node: str) -> bool:
        return node in self._edges.get(vertex, ())

    # --- changes ---------------------------------------------------------------------------------------------------

    def contribute(self, source: Vertex, node: str, vertices: Iterable[Vertex]) -> None:
        """Replace the edges of an object that names a node.

        Args:
            source: the object, such as a pod.
            node: the node that it names; "" removes the edges of `source`.
            vertices: the objects that the node needs because of `source`, besides `source` itself.
        """
        self.withdraw(source)
        if not node:
            return
        contributed = frozenset((source, *vertices))
        self._of[source] = (node, contributed)
        for vertex in contributed:
            self._edges.setdefault(vertex, Counter())[node] += 1

    def withdraw(self, source: Vertex) -> None:
        """Remove the edges that `contribute` added for the object `source`. Do nothing for an unknown object."""
        node, vertices = self._of.pop(source, ("", frozenset[Vertex]()))
        for vertex in vertices:
            nodes = self._edges[vertex]
            nodes[node] -= 1
            if not nodes[node]:
                del nodes[node]
                if not nodes:
                    del self._edges[vertex]

    def withdraw_all(self, kind: str) -> None:
        """Remove the edges that `contribute` added for all objects of a kind.

        Args:
            kind: the plural name of the resource.
        """
        for source in [source for source in self._of if source.kind == kind]:
            self.withdraw(source)

    def put_volume(self, name: str, claim: Vertex | None, secrets: frozenset[Vertex]) -> None:
        """Store or replace a PersistentVolume.

        Args:
            name: its name.
            claim: the claim that it is bound to, or None.
            secrets: the Secrets that are needed to mount it.
        """
        self.remove_volume(name)
        if claim is not None:
            self._claim_of[name] = claim
        self._volume_secrets[name] = secrets
        for secret in secrets:
            self._volumes_of_secret.setdefault(secret, set()).add(name)

    def remove_volume(self, name: str) -> None:
        """Remove a PersistentVolume; ignore an unknown one."""
        self._claim_of.pop(name, None)
        for secret in self._volume_secrets.pop(name, ()):
            self._volumes_of_secret[secret].discard(name)
            if not self._volumes_of_secret[secret]:
                del self._volumes_of_secret[secret]

    def remove_volumes(self) -> None:
        """Remove all PersistentVolumes, with their claims and Secrets."""
        for name in list(self._volume_secrets):
            self.remove_volume(name)


def _observe(event: WatchEvent, kind: str, began: float) -> None:
    """Record in the metrics how long the change of the graph for one watch event took.

    Args:
        event: the event; a DELETED event counts as a deletion, any other as an addition.
        kind: the plural name of the resource.
        began: when the change began, a reading of time.monotonic().
    """
    _ACTIONS.observe((("Delete" if event.type == "DELETED" else "Add") + _ACTED_ON[kind],), time.monotonic() - began)


class _Contributions:
    """A watcher of one resource, such as pods, which passes the changes of its objects to the graph.

    Args:
        graph: the graph.
        kind: the plural name of the resource.
        read: returns the node that an object names, and the objects that the node needs because of it.
    """

    def __init__(self, graph: NodeGraph, kind: str, read: Callable[[Object], tuple[str, Iterable[Vertex]]]) -> None:
        self._graph, self._kind, self._read = graph, kind, read

    def reset(self, entries: Sequence[Entry]) -> None:
        self._graph.withdraw_all(self._kind)
        for entry in entries:
            self._put(entry)

    def apply(self, event: WatchEvent) -> None:
        entry = event.entry
        if entry is None:
            return
        began = time.monotonic()
        if event.type == "DELETED":
            self._graph.withdraw(Vertex(self._kind, entry.namespace, entry.name))
        else:
            self._put(entry)
        _observe(event, self._kind, began)

    def _put(self, entry: Entry) -> None:
        node, vertices = self._read(entry.peek())
        self._graph.contribute(Vertex(self._kind, entry.namespace, entry.name), node, vertices)

    def lost(self) -> None:
        """Keep the edges when the watch ends, until the objects are listed again."""


class _Volumes:
    """The receiver of PersistentVolumes from storage, which passes their claims and Secrets to the graph."""

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph

    def reset(self, entries: Sequence[Entry]) -> None:
        self._graph.remove_volumes()
        for entry in entries:
            self._put(entry)

    def apply(self, event: WatchEvent) -> None:
        if event.entry is None:
            return
        began = time.monotonic()
        if event.type == "DELETED":
            self._graph.remove_volume(event.entry.name)
        else:
            self._put(event.entry)
        _observe(event, VOLUMES.prefix, began)

    def _put(self, entry: Entry) -> None:
        self._graph.put_volume(entry.name, *read_volume(entry.peek()))

    def lost(self) -> None:
        """Keep the volumes when the watch ends, until they are listed again."""


def _read_node(obj: Object) -> tuple[str, Iterable[Vertex]]:
    """Return the node in an object's spec.nodeName ("" for none), and () because the node needs no other objects."""
    return (obj.get("spec") or {}).get("nodeName") or "", ()


def _read_pod(pod: Object) -> tuple[str, Iterable[Vertex]]:
    spec = pod.get("spec") or {}
    if _MIRROR in (pod["metadata"].get("annotations") or {}):
        return spec.get("nodeName") or "", ()  # a mirror pod, which the kubelet itself wrote, grants it nothing
    return spec.get("nodeName") or "", pod_references(pod)


def pod_references(pod: Object) -> Iterator[Vertex]:
    """Yield every object that a node needs to run the pod: service account, Secrets, ConfigMaps and claims.

    Objects can repeat.

    Upstream: podutil.VisitPodSecretNames and related functions.
    """
    namespace, spec = pod["metadata"].get("namespace", ""), pod.get("spec") or {}
    if account := spec.get("serviceAccountName"):
        yield Vertex("serviceaccounts", namespace, account)
    for secret in spec.get("imagePullSecrets") or ():
        yield Vertex("secrets", namespace, secret.get("name") or "")
    for part in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(part) or ():
            yield from _container_references(container, namespace)
    for volume in spec.get("volumes") or ():
        yield from _volume_references(volume, namespace, pod["metadata"]["name"])
    yield from _claim_references(pod, namespace)


def _container_references(container: Object, namespace: str) -> Iterator[Vertex]:
    for source in container.get("envFrom") or ():
        yield from _named(source, namespace, secretRef="secrets", configMapRef="configmaps")
    for variable in container.get("env") or ():
        yield from _named(
            variable.get("valueFrom") or {}, namespace, secretKeyRef="secrets", configMapKeyRef="configmaps"
        )


def _named(source: Object, namespace: str, **kinds: str) -> Iterator[Vertex]:
    for key, kind in kinds.items():
        if name := (source.get(key) or {}).get("name"):
            yield Vertex(kind, namespace, name)


_SECRET_REFS: Final = ("azureFile", "cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")


def _volume_references(volume: Object, namespace: str, pod: str) -> Iterator[Vertex]:
    if name := (volume.get("secret") or {}).get("secretName"):
        yield Vertex("secrets", namespace, name)
    yield from _named(volume, namespace, configMap="configmaps")
    if name := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
        yield Vertex("persistentvolumeclaims", namespace, name)
    if volume.get("ephemeral") is not None:
        yield Vertex("persistentvolumeclaims", namespace, f"{pod}-{volume.get('name', '')}")
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _named(source, namespace, secret="secrets", configMap="configmaps")
    if name := (volume.get("azureFile") or {}).get("secretName"):
        yield Vertex("secrets", namespace, name)
    if name := ((volume.get("csi") or {}).get("nodePublishSecretRef") or {}).get("name"):
        yield Vertex("secrets", namespace, name)
    for kind in _SECRET_REFS:
        if name := ((volume.get(kind) or {}).get("secretRef") or {}).get("name"):
            yield Vertex("secrets", namespace, name)


def _claim_references(pod: Object, namespace: str) -> Iterator[Vertex]:
    """Yield the ResourceClaims of a pod.

    These are the claims named in its spec, and those that were created for the pod and are named in its status.
    """
    status: dict[str, Any] = pod.get("status") or {}
    names = [claim.get("resourceClaimName") for claim in (pod.get("spec") or {}).get("resourceClaims") or ()]
    names += [claim.get("resourceClaimName") for claim in status.get("resourceClaimStatuses") or ()]
    names.append((status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName"))
    yield from (Vertex("resourceclaims", namespace, name) for name in names if name)


def read_volume(volume: Object) -> tuple[Vertex | None, frozenset[Vertex]]:
    """Return the claim that a PersistentVolume is bound to, and the Secrets needed to mount it.

    Returns:
        None and no Secrets if the volume is not bound.
    """
    spec = volume.get("spec") or {}
    ref = spec.get("claimRef") or {}
    if not ref.get("name"):
        return None, frozenset()
    namespace = ref.get("namespace") or ""
    secrets: set[Vertex] = set()
    if name := (spec.get("azureFile") or {}).get("secretName"):
        secrets.add(Vertex("secrets", (spec["azureFile"].get("secretNamespace")) or namespace, name))
    for kind in _SECRET_REFS:
        if name := ((spec.get(kind) or {}).get("secretRef") or {}).get("name"):
            secrets.add(Vertex("secrets", spec[kind]["secretRef"].get("namespace") or namespace, name))
    for key in ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"):  # not those of controllers
        if name := ((spec.get("csi") or {}).get(key) or {}).get("name"):
            secrets.add(Vertex("secrets", spec["csi"][key].get("namespace") or namespace, name))
    return Vertex("persistentvolumeclaims", namespace, ref["name"]), frozenset(secrets)
