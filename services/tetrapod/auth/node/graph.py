"""`NodeGraph`: the objects that each node needs because of the pods that run on it, for the node authorizer.

Edges: node ← pod ← Secret, ConfigMap, claim, service account; claim ← PersistentVolume ← Secret. VolumeAttachments,
ResourceSlices and PodCertificateRequests belong to the node that they name. The graph watches storage from the first
request of a node on, so a cluster without kubelets has no cost. references.py reads the edges from the objects.

Upstream: plugin/pkg/auth/authorizer/node/graph.go.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tetrapod.auth.node.references import Vertex, read_node, read_pod, read_volume
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
        self._contributions: dict[Vertex, tuple[str, frozenset[Vertex]]] = {}
        """The node and the edges of each pod, and of each other object that names its node."""
        self._claim_of: dict[str, Vertex] = {}  # volume → claim
        self._volume_secrets: dict[str, frozenset[Vertex]] = {}
        self._volumes_of_secret: dict[Vertex, set[str]] = {}

    async def ready(self) -> None:
        """Start watching storage at the first call, and return when all resources have been listed."""
        if not self._reflectors:
            readers = (
                (PODS, read_pod),
                (ATTACHMENTS, read_node),
                (SLICES, read_node),
                (CERTIFICATE_REQUESTS, read_node),
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
        self._contributions[source] = (node, contributed)
        for vertex in contributed:
            self._edges.setdefault(vertex, Counter())[node] += 1

    def withdraw(self, source: Vertex) -> None:
        """Remove the edges that `contribute` added for the object `source`. Do nothing for an unknown object."""
        node, vertices = self._contributions.pop(source, ("", frozenset[Vertex]()))
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
        for source in [source for source in self._contributions if source.kind == kind]:
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
