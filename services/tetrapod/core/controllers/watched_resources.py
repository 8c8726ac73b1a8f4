"""`WatchedResources`: chooses the resources that the garbage collector watches, and keeps their objects in its graph.

It watches each resource that can be deleted, listed and watched. Discovery adds and removes the resources of
CustomResourceDefinitions. They are watched only once they have an object, because watching an empty resource costs as
much (upstream watches these too).
Upstream: pkg/controller/garbagecollector/garbagecollector.go, Sync; graph_builder.go, syncMonitors
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Final

from tetrapod.core.controllers.discovered import DiscoveredResource, Discovery
from tetrapod.core.controllers.ownership_graph import OwnershipGraph
from tetrapod.core.controllers.ownership_nodes import Node, NodeReflector
from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.presence import Presence
from tetrapod.machinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.types import groups as builtin_groups

log = logging.getLogger(__name__)

_NEEDED: Final = frozenset({"delete", "list", "watch"})
_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
_RESYNC: Final = 5.0
"""Seconds between two reads of discovery."""
_RETRY: Final = 0.5
"""Seconds between two reads of discovery while a new resource is expected."""
_AFTER_A_DEFINITION: Final = 3.0
"""Seconds after a change of a CustomResourceDefinition for which a new resource is expected."""
SETTLE: Final = 4.0
"""Seconds from a custom resource's first object until the resource is watched.

Upstream looks for new resources every 30 seconds, and clients that delete in the foreground rely on seeing the object
for a while. Tests of operators set it to 0.
"""
_CRDS: Final = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_BUILTIN: Final = frozenset(group.name for group in builtin_groups())


class WatchedResources:
    """The resources that the garbage collector watches, with a reflector for each.

    Args:
        client: lists and watches the resources.
        presence: the resources that have, or had, objects in the store.
        settle: seconds. A custom resource is watched once it has had objects in the store for this time.
        graph: gets the objects of the watched resources.

    Attributes:
        by_kind: all served resources, watched or not, by the kind of their objects.
    """

    def __init__(self, client: Client, presence: Presence, settle: float, graph: OwnershipGraph) -> None:
        self.by_kind: dict[GroupVersionKind, DiscoveredResource] = {}
        self._client = client
        self._settle = settle
        self._discovery = Discovery(client)
        self._presence = presence
        self._graph = graph
        self._first_seen: dict[GroupVersionResource, float] = {}
        self._look_until = 0.0
        self._reflectors: dict[GroupVersionResource, tuple[NodeReflector, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Watch the resources until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    try:
                        await self._refresh(group)
                    except (
                        StatusError,
                        Unavailable,
                        OSError,
                    ) as error:  # the aggregator may be unavailable; the next attempt retries
                        log.debug("discovery: %s", error)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_RETRY if self._expects_a_resource() else _RESYNC):
                            await self._presence.changed.wait()
        finally:
            await self._presence.close()

    def _expects_a_resource(self) -> bool:
        """Return whether a resource is likely to be added soon."""
        return (
            bool(self._first_seen.keys() - self._reflectors.keys())
            or _CRDS not in self._reflectors
            or time.monotonic() < self._look_until
        )

    async def _refresh(self, group: asyncio.TaskGroup) -> None:
        """Start reflectors for new resources and stop those of resources that are no longer served.

        Reflectors of stale group-versions continue.

        Args:
            group: runs the reflectors.

        Upstream: pkg/controller/garbagecollector/garbagecollector.go, Sync (partial discovery).
        """
        self._presence.changed.clear()
        discovered = await self._discovery.resources()
        watchable = {
            r.gvr: r
            for r in discovered.resources
            if r.preferred and r.verbs >= _NEEDED and (r.gvr.group, r.gvr.resource) not in _IGNORED
        }
        self.by_kind = {r.kind: r for r in discovered.resources}
        self._start_new(watchable, group)
        self._stop_removed(
            {
                gvr
                for gvr in (self._first_seen.keys() | self._reflectors.keys()) - watchable.keys()
                if not discovered.may_have(gvr)
            },
            {gvr.group_resource: gvr for gvr in watchable},
        )

    def _start_new(
        self, watchable: Mapping[GroupVersionResource, DiscoveredResource], group: asyncio.TaskGroup
    ) -> None:
        """Start a reflector for each resource that has none; for a custom resource only once it has objects.

        Args:
            watchable: the resources, in their preferred versions.
            group: runs the reflectors.
        """
        custom = {gvr for gvr in watchable if self._is_custom(gvr)}
        watched = {gvr.group_resource for gvr in self._reflectors}
        self._presence.follow({gvr.group for gvr in custom})
        for gvr in watchable.keys() - self._reflectors.keys():
            if gvr in custom and gvr.group_resource not in watched and not self._settled(gvr):
                continue
            reflector = NodeReflector(self._client, watchable[gvr], self._changed)
            self._reflectors[gvr] = (reflector, group.create_task(reflector.run()))

    def _stop_removed(
        self, removed: set[GroupVersionResource], successors: Mapping[GroupResource, GroupVersionResource]
    ) -> None:
        """Stop the reflectors of removed resources, and remove their objects from the graph.

        If another version became preferred, the objects of the former one stay in the graph until those of the new one
        have been listed.

        Args:
            removed: the resources, in versions that are not preferred or no longer served.
            successors: the preferred versions by group and resource.
        """
        listed = [
            gvr for gvr in removed if gvr not in self._reflectors or self._is_listed(successors.get(gvr.group_resource))
        ]
        for gvr in listed:
            self._first_seen.pop(gvr, None)
            if gvr in self._reflectors:
                reflector, task = self._reflectors.pop(gvr)
                task.cancel()
                successor, _ = self._reflectors.get(successors.get(gvr.group_resource, gvr), (None, None))
                for key, node in reflector.nodes.items():
                    self._graph.forget(node, successor.nodes.get(key) if successor else None)

    def _is_listed(self, successor: GroupVersionResource | None) -> bool:
        """Return whether the objects of a resource have been listed; True for None."""
        reflector, _ = self._reflectors.get(successor, (None, None)) if successor else (None, None)
        return successor is None or (reflector is not None and reflector.synced.is_set())

    def _settled(self, gvr: GroupVersionResource) -> bool:
        """Return whether the resource has had objects in the store for at least `settle` seconds.

        The time is counted from the first call that sees objects.
        """
        if (gvr.group, gvr.resource) not in self._presence:
            self._first_seen.pop(gvr, None)
            return False
        return time.monotonic() - self._first_seen.setdefault(gvr, time.monotonic()) >= self._settle

    def _is_custom(self, gvr: GroupVersionResource) -> bool:
        """Return whether the resource is a custom resource, whose objects are in this server's store.

        The objects of other resources that are not built in belong to aggregated API servers. Until the
        CustomResourceDefinitions are synced, every resource that is not built in counts as a custom resource.
        """
        if gvr.group in _BUILTIN:
            return False
        definitions, _ = self._reflectors.get(_CRDS, (None, None))
        return (
            definitions is None
            or not definitions.synced.is_set()
            or ("", f"{gvr.resource}.{gvr.group}") in definitions.nodes
        )

    def _changed(self, gvr: GroupVersionResource, old: Node | None, new: Node | None) -> None:
        """Update the graph for one event of a reflector: an addition (no `old`), a deletion (no `new`) or a change.

        An object that was recreated under the same name has another uid, and counts as a deletion and an addition.
        """
        if gvr == _CRDS and not self._settle:  # discovery will list a new resource in a moment
            self._look_until = time.monotonic() + _AFTER_A_DEFINITION
            self._presence.changed.set()
        if new is None:
            if old is not None:
                self._graph.remove(old)
        elif old is not None and old.uid != new.uid:
            self._graph.remove(old)
            self._graph.put(None, new)
        else:
            self._graph.put(old, new)
