"""Deletes what has lost its owners (upstream: pkg/controller/garbagecollector): background, foreground and orphan.

One informer for each resource that can be deleted and watched keeps a graph of owners and dependents, uid by uid; custom
resources come and go with discovery, and are watched from their first object on: upstream watches the empty ones too, which costs
as much for each. An owner that the graph does not know is asked for live before its dependents go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.core.controllers.discovered import DiscoveredResource, Discovery
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.generic.storage.presence import Presence
from tetrapod.generic.unavailable import Unavailable
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.types import groups as builtin_groups

log = logging.getLogger(__name__)

_NEEDED: Final = frozenset({"delete", "list", "watch"})
_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"
_RESYNC: Final = 5.0
_AGAIN: Final = 0.5
_UNSEEN: Final = 2.0
_AFTER_A_DEFINITION: Final = 3.0
SETTLE: Final = 4.0
"""Seconds from a custom resource's first object on until it is collected. Upstream looks for new resources every 30 seconds, and clients
that delete in the foreground have learnt to see the object for a while. Tests of operators need not wait."""
_CRDS: Final = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_BUILTIN: Final = frozenset(group.name for group in builtin_groups())


_NONE: Final = frozenset[str]()
"""One for all who have no finalizers: there is a node for every object, and the fewer Python objects it has the better."""


@dataclass(slots=True)
class Node:
    uid: str
    gvr: GroupVersionResource
    namespace: str
    name: str
    owners: tuple[tuple[str, bool], ...] = ()  # (uid, blockOwnerDeletion)
    deleting: bool = False
    finalizers: frozenset[str] = _NONE


class GarbageCollector:
    name = "garbage-collector-controller"

    def __init__(self, client: Client, presence: Presence, settle: float = SETTLE) -> None:
        self._client = client
        self._settle = settle
        self._discovery = Discovery(client)
        self._presence = presence
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, set[str]] = {}  # owner's uid → uids, also of owners that are not there
        self._first_seen: dict[GroupVersionResource, float] = {}
        self._look_until = 0.0
        self._absent: set[str] = set()  # owners that were asked for and are not there
        self._informers: dict[GroupVersionResource, tuple[Informer, asyncio.Task[None]]] = {}
        self._resources: dict[tuple[str, str], DiscoveredResource] = {}  # (group, kind) →
        self._queue: WorkQueue[str] = WorkQueue(self.name, self._sync)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_fresh(group))
                group.create_task(self._queue.run(10))
        finally:
            await self._presence.close()

    async def _keep_fresh(self, group: asyncio.TaskGroup) -> None:
        while True:
            try:
                await self._refresh(group)
            except (StatusError, Unavailable, OSError) as error:  # the front door may be away; the next look finds it again
                log.debug("discovery: %s", error)
            with contextlib.suppress(TimeoutError):
                soon = (
                    self._first_seen.keys() - self._informers.keys() or _CRDS not in self._informers or time.monotonic() < self._look_until
                )
                async with asyncio.timeout(_AGAIN if soon else _RESYNC):
                    await self._presence.changed.wait()

    async def _refresh(self, group: asyncio.TaskGroup) -> None:
        """Begin to watch what is new, and end what is gone. What cannot be asked now stays as it was."""
        self._presence.changed.clear()
        found = await self._discovery.resources()
        wanted = {r.gvr: r for r in found.resources if r.preferred and r.verbs >= _NEEDED and (r.gvr.group, r.gvr.resource) not in _IGNORED}
        self._resources = {(r.kind.group, r.kind.kind): r for r in found.resources if r.preferred}
        custom = {gvr for gvr in wanted if self._is_custom(gvr)}
        self._presence.follow({gvr.group for gvr in custom})
        for gvr in wanted.keys() - self._informers.keys():
            if gvr in custom and not self._settled(gvr):
                continue
            informer = Informer(self._client, gvr, metadata_only=True)
            informer.handlers.append(self._handler(gvr))
            self._informers[gvr] = (informer, group.create_task(informer.run()))
        if not found.stale:
            for gvr in self._first_seen.keys() - wanted.keys():
                del self._first_seen[gvr]
            for gvr in self._informers.keys() - wanted.keys():
                informer, task = self._informers.pop(gvr)
                task.cancel()
                for obj in informer.objects.values():
                    self._remove(obj["metadata"]["uid"])

    def _settled(self, gvr: GroupVersionResource) -> bool:
        if (gvr.group, gvr.resource) not in self._presence:
            self._first_seen.pop(gvr, None)
            return False
        return time.monotonic() - self._first_seen.setdefault(gvr, time.monotonic()) >= self._settle

    def _is_custom(self, gvr: GroupVersionResource) -> bool:
        """Whether its objects are in our store, by its definition. Until the definitions are known, whatever is not built in may be."""
        if gvr.group in _BUILTIN:
            return False
        definitions, _ = self._informers.get(_CRDS, (None, None))
        return definitions is None or not definitions.synced.is_set() or ("", f"{gvr.resource}.{gvr.group}") in definitions.objects

    def _handler(self, gvr: GroupVersionResource) -> Any:
        def on_change(old: Object | None, new: Object | None) -> None:
            if gvr == _CRDS and not self._settle:  # discovery tells of it in a moment
                self._look_until = time.monotonic() + _AFTER_A_DEFINITION
                self._presence.changed.set()
            if new is not None:
                if old is not None and old["metadata"].get("uid") != new["metadata"].get("uid"):
                    self._remove(old["metadata"]["uid"])
                self._put(gvr, new["metadata"])
            elif old is not None:
                self._remove(old["metadata"]["uid"])

        return on_change

    def _put(self, gvr: GroupVersionResource, meta: Object) -> None:
        uid = meta["uid"]
        self._absent.discard(uid)
        node = self._nodes.get(uid)
        if node is None:
            node = self._nodes[uid] = Node(uid, gvr, meta.get("namespace", ""), meta["name"])
        owners = tuple((o["uid"], bool(o.get("blockOwnerDeletion"))) for o in meta.get("ownerReferences") or ())
        for owner, _ in node.owners:
            if all(owner != o for o, _ in owners):
                self._unlink(owner, uid)
        for owner, _ in owners:
            self._dependents.setdefault(owner, set()).add(uid)
        node.owners = owners
        node.deleting = bool(meta.get("deletionTimestamp"))
        node.finalizers = frozenset(finalizers) if (finalizers := meta.get("finalizers")) else _NONE
        if owners or (node.deleting and node.finalizers & {_FOREGROUND, _ORPHAN}):
            self._queue.add(uid)

    def _unlink(self, owner: str, dependent: str) -> None:
        found = self._dependents.get(owner)
        if found is None:
            return
        found.discard(dependent)
        if not found and owner not in self._nodes:
            del self._dependents[owner]
        elif owner in self._nodes:
            self._queue.add(owner)

    def _remove(self, uid: str) -> None:
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        self._absent.add(uid)
        for owner, _ in node.owners:
            self._unlink(owner, uid)
        for dependent in self._dependents.get(uid, ()):
            self._queue.add(dependent)
        if not self._dependents.get(uid):
            self._dependents.pop(uid, None)
            self._absent.discard(uid)

    async def _sync(self, uid: str) -> None:
        node = self._nodes.get(uid)
        if node is None:
            return
        if node.deleting:
            if _ORPHAN in node.finalizers:
                await self._orphan(node)
            elif _FOREGROUND in node.finalizers:
                await self._foreground(node)
            return
        if node.owners:
            await self._attempt_to_delete(node)

    async def _attempt_to_delete(self, node: Node) -> None:
        live = await self._live(node)
        if live is None:
            return
        references = live["metadata"].get("ownerReferences") or []
        solid, waiting, dangling = [], [], []
        for reference in references:
            owner = await self._owner(reference, node.namespace)
            if owner is None:
                dangling.append(reference)
            elif owner["metadata"].get("deletionTimestamp") and _FOREGROUND in (owner["metadata"].get("finalizers") or ()):
                waiting.append(reference)
            else:
                solid.append(reference)
        if solid and any(reference["uid"] not in self._nodes for reference in solid):
            self._queue.add_after(node.uid, _UNSEEN)  # it may go before its kind is watched, and no event tell of it
        if not references or (solid and not dangling and not waiting):
            return
        if solid:
            await self._drop_references(node, live, {r["uid"] for r in [*dangling, *waiting]})
            return
        policy = "Background"
        finalizers = live["metadata"].get("finalizers") or ()
        if _ORPHAN in finalizers:
            policy = "Orphan"
        elif _FOREGROUND in finalizers or (waiting and self._dependents.get(node.uid)):
            policy = "Foreground"
        if live["metadata"].get("deletionTimestamp"):
            return
        preconditions = {"uid": node.uid, "resourceVersion": live["metadata"]["resourceVersion"]}
        await self._quietly(
            self._client.delete(node.gvr, node.namespace, node.name, {"preconditions": preconditions, "propagationPolicy": policy})
        )

    async def _foreground(self, node: Node) -> None:
        """The dependents go first; when none is left that blocks, the finalizer goes."""
        blocking = False
        for uid in list(self._dependents.get(node.uid, ())):
            dependent = self._nodes.get(uid)
            if dependent is None:
                continue
            if any(owner == node.uid and block for owner, block in dependent.owners):
                blocking = True
            if not dependent.deleting:
                self._queue.add(uid)
        if not blocking:
            await self._drop_finalizer(node, _FOREGROUND)

    async def _orphan(self, node: Node) -> None:
        for uid in list(self._dependents.get(node.uid, ())):
            dependent = self._nodes.get(uid)
            if dependent is None:
                continue
            live = await self._live(dependent)
            if live is not None:
                await self._drop_references(dependent, live, {node.uid})
        await self._drop_finalizer(node, _ORPHAN)

    async def _drop_references(self, node: Node, live: Object, uids: set[str]) -> None:
        kept = [r for r in live["metadata"].get("ownerReferences") or () if r["uid"] not in uids]
        patch = {
            "metadata": {
                "uid": node.uid,
                "resourceVersion": live["metadata"]["resourceVersion"],
                "ownerReferences": kept or None,
            }
        }
        await self._quietly(self._client.patch(node.gvr, node.namespace, node.name, patch))

    async def _drop_finalizer(self, node: Node, finalizer: str) -> None:
        live = await self._live(node)
        if live is None or finalizer not in (live["metadata"].get("finalizers") or ()):
            return
        kept = [f for f in live["metadata"]["finalizers"] if f != finalizer]
        patch = {
            "metadata": {
                "uid": node.uid,
                "resourceVersion": live["metadata"]["resourceVersion"],
                "finalizers": kept or None,
            }
        }
        await self._quietly(self._client.patch(node.gvr, node.namespace, node.name, patch))

    async def _live(self, node: Node) -> Object | None:
        """The object as it is now, if it is the same one."""
        try:
            live = await self._client.get(node.gvr, node.namespace, node.name)
        except StatusError as error:
            if error.code == 404:
                return None
            raise
        return live if live["metadata"]["uid"] == node.uid else None

    async def _owner(self, reference: Object, namespace: str) -> Object | None:
        """The owner, live; None where it is surely not there. Raises where that cannot be told."""
        if reference["uid"] in self._absent:
            return None
        group, _, version = reference["apiVersion"].rpartition("/")
        resource = self._resources.get((group, reference["kind"]))
        if resource is None:
            raise StatusError(503, "", f"no resource of kind {reference['kind']} in {reference['apiVersion']} is known")
        gvr = GroupVersionResource(group, version or resource.gvr.version, resource.gvr.resource)
        try:
            owner = await self._client.get(gvr, namespace if resource.namespaced else "", reference["name"])
        except StatusError as error:
            if error.code == 404:
                return None
            raise
        return owner if owner["metadata"]["uid"] == reference["uid"] else None

    async def _quietly(self, call: Any) -> None:
        """What is gone, or has changed meanwhile, comes again by its own event."""
        try:
            await call
        except StatusError as error:
            if error.code not in (404, 409):
                raise
