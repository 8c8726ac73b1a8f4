"""Tests that the garbage collector needs linear time for an object with many owners, and examines them in small
steps.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from support.growth import assert_linear
from tetrapod.core.controllers.discovered import DiscoveredResource
from tetrapod.core.controllers.garbage_collector import GarbageCollector
from tetrapod.core.controllers.ownership_graph import OwnershipGraph
from tetrapod.core.controllers.ownership_nodes import Node, Owner
from tetrapod.generic.client.interface import Client
from tetrapod.generic.storage.presence import Presence
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

MAPS = GroupVersionResource("", "v1", "configmaps")
MAPS_KIND = GroupVersionKind("", "v1", "ConfigMap")


def node(owners: list[str]) -> Node:
    references = tuple(Owner(owner, "/ConfigMap/a") for owner in owners)
    return Node("dependent", MAPS, "ConfigMap", "default", "a", references)


class EmptyServer:
    """A client of a server with one object, whose owners do not exist.

    Reads do not wait, as those of the own process.
    """

    def __init__(self, count: int) -> None:
        references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": f"u{i}"} for i in range(count)]
        self.live: Object = {
            "metadata": {"name": "a", "uid": "dependent", "resourceVersion": "1", "ownerReferences": references}
        }
        self.reads = 0
        self.deleted = False

    async def get(self, gvr: GroupVersionResource, namespace: str, name: str) -> Object:
        self.reads += 1
        if self.reads == 1:
            return self.live
        raise StatusError(404, "NotFound", "not found")

    async def delete(self, *_: Any) -> None:
        self.deleted = True


def collector(client: object) -> GarbageCollector:
    found = GarbageCollector(cast("Client", client), cast("Presence", None))
    found._resources.by_kind[MAPS_KIND] = cast("DiscoveredResource", _ConfigMaps)
    return found


class _ConfigMaps:
    gvr = MAPS
    namespaced = True


async def test_an_update_of_an_object_with_many_owners_is_linear() -> None:
    def update(given: tuple[Node, Node]) -> None:
        OwnershipGraph(lambda uid: None).put(*given)

    def nodes(size: int) -> tuple[Node, Node]:
        owners = [f"u{i}" for i in range(size)]
        return node(owners), node(owners[::-1])

    assert_linear(update, nodes, size=100)


async def test_many_owners_are_read_in_small_steps() -> None:
    server = EmptyServer(1000)
    work = asyncio.create_task(collector(server)._attempt_to_delete(node(["u1"])))
    steps = 0
    while not work.done():
        steps += 1
        await asyncio.sleep(0)
    assert server.deleted
    assert steps > 1000 / 20
