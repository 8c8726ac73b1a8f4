"""The garbage collector: background, foreground and orphan deletion by owner references.

The watched resources (`watched_resources.py`) maintain a graph of owners and dependents by uid (`ownership_graph.py`).
Before it deletes dependents, the collector reads an owner that is missing in the graph from the API.
Upstream: pkg/controller/garbagecollector.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any, Final

from tetrapod.core.controllers.ownership_graph import OwnershipGraph
from tetrapod.core.controllers.ownership_nodes import Node
from tetrapod.core.controllers.watched_resources import SETTLE, WatchedResources
from tetrapod.generic.client.events import EventRecorder
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import ExpectedFailure, WorkQueue
from tetrapod.generic.storage.presence import Presence
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.metadata import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from tetrapod.machinery.status import StatusError

_RECHECK: Final = 2.0
"""Seconds until an object is examined again whose owner is of a resource that is not watched yet."""
_STEP: Final = 16
"""Owners or dependents of an object that are examined in one step of the event loop. Reads of this process' own
resources do not wait, and take 40 µs each: the 7,000 owners of a ConfigMap of 500 kB took a step of 290 ms.
"""
_LONGEST_NOTE: Final = 1024


class UnknownKindError(ExpectedFailure):
    """An owner reference has a kind or a version that discovery does not list. It may be listed later."""


class NamespacedOwnerError(Exception):
    """A cluster-scoped object refers to an owner that has a namespace, which no retry resolves."""


class GarbageCollector:
    """The controller that deletes objects whose owners are gone.

    It also handles the finalizers `orphan` and `foregroundDeletion`.

    Args:
        client: reads and deletes objects of all resources.
        presence: the resources that have, or had, objects in the store.
        settle: seconds. A custom resource is watched once it has had objects in the store for this time.
    """

    name = "garbage-collector-controller"

    def __init__(self, client: Client, presence: Presence, settle: float = SETTLE) -> None:
        self._client = client
        self._events = EventRecorder(client, self.name)
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)
        self._graph = OwnershipGraph(self._queue.add)
        self._resources = WatchedResources(client, presence, settle, self._graph)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._resources.run())
            group.create_task(self._queue.run(10))

    async def _sync(self, uid: str) -> None:
        node = self._graph.nodes.get(uid)
        if node is None:
            return
        if node.deleting:
            if ORPHAN_FINALIZER in node.finalizers:
                await self._orphan(node)
            elif FOREGROUND_FINALIZER in node.finalizers:
                await self._foreground(node)
            return
        if node.owners:
            with contextlib.suppress(NamespacedOwnerError):
                await self._attempt_to_delete(node)

    async def _attempt_to_delete(self, node: Node) -> None:
        """Delete the object if none of its owners exists, or drop its references to missing owners.

        Raises:
            NamespacedOwnerError: the object is cluster-scoped, and an owner has a namespace.
            UnknownKindError: the kind of an owner is not served in the version of the reference.
            StatusError: an object cannot be read or written, or it is unknown whether an owner exists.
            Unavailable: the server cannot be reached.

        Upstream: attemptToDeleteItem.
        """
        live = await self._live(node)
        if live is None:
            return
        references = live["metadata"].get("ownerReferences") or []
        if node.uid in self._graph.misplaced:
            self._graph.misplaced.discard(node.uid)
            await self._report_misplaced(node, live, references)
        solid, waiting, dangling = [], [], []
        for i, reference in enumerate(references):
            if i % _STEP == _STEP - 1:
                await asyncio.sleep(0)
            owner = await self._owner(reference, node.namespace)
            if owner is None:
                dangling.append(reference)
            elif owner["metadata"].get("deletionTimestamp") and FOREGROUND_FINALIZER in (
                owner["metadata"].get("finalizers") or ()
            ):
                waiting.append(reference)
            else:
                solid.append(reference)
        if solid and any(reference["uid"] not in self._graph.nodes for reference in solid):
            # the owner may be deleted before its resource is watched, and then no event triggers this
            self._queue.add_after(node.uid, _RECHECK)
        if not references or (solid and not dangling and not waiting):
            return
        if solid:
            await self._quietly(self._drop_references(node, live, {r["uid"] for r in [*dangling, *waiting]}))
            return
        policy = "Background"
        finalizers = live["metadata"].get("finalizers") or ()
        if ORPHAN_FINALIZER in finalizers:
            policy = "Orphan"
        elif FOREGROUND_FINALIZER in finalizers or (waiting and self._graph.dependents.get(node.uid)):
            policy = "Foreground"
        if live["metadata"].get("deletionTimestamp"):
            return
        await self._quietly(self._delete(node, live, policy, may_be_in_cycle=bool(waiting)))

    async def _delete(self, node: Node, live: Object, policy: str, *, may_be_in_cycle: bool) -> None:
        """Delete the object, in the state that was read.

        Args:
            node: the object.
            live: its state.
            policy: the propagationPolicy.
            may_be_in_cycle: whether an owner waits for this object. If a dependent of the object waits for its own
                dependents too, they may form a cycle of owners. Its references stop blocking their owners then.

        Raises:
            StatusError: the object cannot be changed or deleted.
            Unavailable: the server cannot be reached.
        """
        if may_be_in_cycle and self._graph.has_waiting_dependent(node.uid):
            references = live["metadata"]["ownerReferences"]
            unblocked = [{**r, "blockOwnerDeletion": False} if r.get("blockOwnerDeletion") else r for r in references]
            live = await self._patch(node, live, {"ownerReferences": unblocked})
        preconditions = {"uid": node.uid, "resourceVersion": live["metadata"]["resourceVersion"]}
        options = {"preconditions": preconditions, "propagationPolicy": policy}
        await self._client.delete(node.gvr, node.namespace, node.name, options)

    async def _report_misplaced(self, node: Node, live: Object, references: list[Object]) -> None:
        """Record a Warning event for the first owner that is known to be in another namespace.

        Args:
            node: the dependent.
            live: its state.
            references: its owner references.

        Upstream: pkg/controller/garbagecollector/graph_builder.go, reportInvalidNamespaceOwnerRef
        """
        for reference in references:
            owner = self._graph.nodes.get(reference["uid"])
            if owner is not None and not owner.may_own_in(node.namespace):
                note = (
                    f"ownerRef [{reference['apiVersion']}/{reference['kind']}, namespace: {node.namespace}, "
                    f"name: {reference['name']}, uid: {reference['uid']}] does not exist in namespace "
                    f"{go_quote(node.namespace)}"
                )
                dependent = {
                    "kind": live["kind"],
                    "apiVersion": live["apiVersion"],
                    "metadata": {"namespace": node.namespace, "name": node.name, "uid": node.uid},
                }
                await self._events.record_warning(
                    dependent, "OwnerRefInvalidNamespace", "GarbageCollection", note[:_LONGEST_NOTE]
                )
                return

    async def _foreground(self, node: Node) -> None:
        """Queue the dependents of an object that is deleted in the foreground, so that they are deleted.

        The object's finalizer is dropped when no dependent with blockOwnerDeletion remains.
        """
        blocking = False
        for i, uid in enumerate(list(self._graph.dependents.get(node.uid, ()))):
            if i % _STEP == _STEP - 1:
                await asyncio.sleep(0)
            dependent = self._graph.nodes.get(uid)
            if dependent is None:
                continue
            if any(owner.uid == node.uid and owner.blocks for owner in dependent.owners):
                blocking = True
            if not dependent.deleting:
                self._queue.add(uid)
        if not blocking:
            await self._drop_finalizer(node, FOREGROUND_FINALIZER)

    async def _orphan(self, node: Node) -> None:
        """Remove the owner references to this object from all its dependents in the graph, then its finalizer `orphan`.

        A dependent that is gone is skipped. After an error (see `_live`) the finalizer stays, and the queue repeats all
        of this. A conflict is an error too: with its reference, the dependent would be deleted after its owner.
        """
        for uid in list(self._graph.dependents.get(node.uid, ())):
            dependent = self._graph.nodes.get(uid)
            if dependent is None:
                continue
            live = await self._live(dependent)
            if live is not None:
                await self._quietly(self._drop_references(dependent, live, {node.uid}), codes=(404,))
        await self._drop_finalizer(node, ORPHAN_FINALIZER)

    async def _drop_references(self, node: Node, live: Object, uids: set[str]) -> None:
        kept = [r for r in live["metadata"].get("ownerReferences") or () if r["uid"] not in uids]
        await self._patch(node, live, {"ownerReferences": kept or None})

    async def _drop_finalizer(self, node: Node, finalizer: str) -> None:
        live = await self._live(node)
        if live is None or finalizer not in (live["metadata"].get("finalizers") or ()):
            return
        kept = [f for f in live["metadata"]["finalizers"] if f != finalizer]
        await self._quietly(self._patch(node, live, {"finalizers": kept or None}))

    async def _patch(self, node: Node, live: Object, metadata: Object) -> Object:
        """Change the metadata of an object, in the state that was read, and return the new state.

        Raises:
            StatusError: 409, the object was changed in between; or the server returned another error.
            Unavailable: the server cannot be reached.
        """
        state = {"uid": node.uid, "resourceVersion": live["metadata"]["resourceVersion"]}
        return await self._client.patch(node.gvr, node.namespace, node.name, {"metadata": {**state, **metadata}})

    async def _live(self, node: Node) -> Object | None:
        """Read the object from the API; return None if it is gone or has been recreated with another uid.

        Raises:
            StatusError: the server returned an error other than 404.
            Unavailable: the server cannot be reached.
        """
        try:
            live = await self._client.get(node.gvr, node.namespace, node.name)
        except StatusError as error:
            if error.code == 404:
                return None
            raise
        return live if live["metadata"]["uid"] == node.uid else None

    async def _owner(self, reference: Object, namespace: str) -> Object | None:
        """Read the owner from the API; return None if it does not exist or has another uid than the reference.

        Args:
            reference: an owner reference.
            namespace: the namespace of the dependent.

        Raises:
            NamespacedOwnerError: the owner has a namespace, and the dependent has none.
            UnknownKindError: the kind in the version of the reference is not served.
            StatusError: it is unknown whether the owner exists.

        Upstream: isDangling
        """
        group_version = GroupVersion.parse(reference["apiVersion"])
        resource = self._resources.by_kind.get(GroupVersionKind(*group_version, reference["kind"]))
        if resource is not None and resource.namespaced and not namespace:
            raise NamespacedOwnerError
        if reference["uid"] in self._graph.absent:
            return None
        if resource is None:
            raise UnknownKindError(f"no resource of kind {reference['kind']} in {reference['apiVersion']} is known")
        try:
            owner = await self._client.get(resource.gvr, namespace if resource.namespaced else "", reference["name"])
        except StatusError as error:
            if error.code == 404:
                return None
            raise
        return owner if owner["metadata"]["uid"] == reference["uid"] else None

    async def _quietly(self, call: Awaitable[Any], codes: tuple[int, ...] = (404, 409)) -> None:
        """Await a write and ignore its errors 404 and 409: a deletion or a concurrent change triggers another event.

        Args:
            call: the awaitable of the write.
            codes: the errors to ignore.

        Raises:
            StatusError: the write was rejected with another code.
            Unavailable: the server cannot be reached.
        """
        try:
            await call
        except StatusError as error:
            if error.code not in codes:
                raise
