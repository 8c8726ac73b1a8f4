"""Tests of races and of the memory of the garbage collector, which requests from outside cannot bring about."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from tetrapod.core.controllers.garbage_collector import GarbageCollector
from tetrapod.core.controllers.ownership_graph import OwnershipGraph
from tetrapod.core.controllers.ownership_nodes import Node, Owner
from tetrapod.generic.client.interface import Client
from tetrapod.generic.storage.presence import Presence
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.metadata import ORPHAN_FINALIZER
from tetrapod.machinery.status import StatusError

MAPS = GroupVersionResource("", "v1", "configmaps")
OWNER = Node("owner", MAPS, "ConfigMap", "default", "owner", deleting=True, finalizers=frozenset({ORPHAN_FINALIZER}))
DEPENDENT = Node("dependent", MAPS, "ConfigMap", "default", "dependent", (Owner("owner", "/ConfigMap/owner"),))


class BusyServer:
    """A client of a server with an owner and a dependent, which other clients change before each of its patches."""

    def __init__(self) -> None:
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "owner"}
        self.objects: dict[str, Object] = {
            "owner": {"metadata": {"uid": "owner", "resourceVersion": "1", "finalizers": [ORPHAN_FINALIZER]}},
            "dependent": {"metadata": {"uid": "dependent", "resourceVersion": "2", "ownerReferences": [reference]}},
        }

    async def get(self, gvr: GroupVersionResource, namespace: str, name: str) -> Object:
        return self.objects[name]

    async def patch(self, gvr: GroupVersionResource, namespace: str, name: str, patch: Any) -> Object:
        if name == "dependent":
            raise StatusError(409, "Conflict", "the object has been modified")
        self.objects[name] = {"metadata": {**self.objects[name]["metadata"], **patch["metadata"]}}
        return self.objects[name]


async def test_an_owner_stays_until_its_dependents_are_orphaned() -> None:
    """After the owner, the collector would delete dependents that still refer to it."""
    server = BusyServer()
    collector = GarbageCollector(cast("Client", server), cast("Presence", None))
    collector._graph.put(None, OWNER)
    collector._graph.put(None, DEPENDENT)
    try:
        await collector._orphan(OWNER)
    except StatusError as error:
        assert error.code == 409
    assert server.objects["owner"]["metadata"]["finalizers"] == [ORPHAN_FINALIZER]


def test_the_graph_forgets_deleted_owners_with_their_last_dependent() -> None:
    graph = OwnershipGraph(lambda uid: None)
    graph.put(None, OWNER)
    graph.put(None, DEPENDENT)
    graph.remove(OWNER)
    assert graph.absent == {"owner"}
    graph.remove(DEPENDENT)
    assert (graph.nodes, graph.dependents, graph.absent) == ({}, {}, set())


def test_a_node_of_a_resource_that_is_no_longer_watched_does_not_count_as_deleted() -> None:
    """Its objects may still exist, as those of an aggregated API server whose APIService was deleted."""
    examined: list[str] = []
    graph = OwnershipGraph(examined.append)
    graph.put(None, OWNER)
    graph.put(None, DEPENDENT)
    examined.clear()
    graph.forget(OWNER)
    assert graph.absent == set()
    assert examined == ["dependent"]


def test_a_node_of_another_version_replaces_the_node_of_the_same_object() -> None:
    graph = OwnershipGraph(lambda uid: None)
    graph.put(None, DEPENDENT)
    later = msgspec.structs.replace(DEPENDENT, gvr=MAPS._replace(version="v2"), owners=())
    graph.put(None, later)
    graph.forget(DEPENDENT)
    assert graph.nodes == {"dependent": later}
    assert graph.dependents == {}


def test_a_forgotten_node_is_replaced_by_the_node_of_another_version() -> None:
    """Both versions are watched while one of them is unavailable."""
    graph = OwnershipGraph(lambda uid: None)
    later = msgspec.structs.replace(DEPENDENT, gvr=MAPS._replace(version="v2"))
    graph.put(None, DEPENDENT)
    graph.put(None, later)
    graph.forget(later, DEPENDENT)
    assert graph.nodes == {"dependent": DEPENDENT}
    assert graph.dependents == {"owner": {"dependent"}}
