"""Nodes of the garbage collector's graph, one for each object of the cluster.

A node has only the fields that the collector needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from sys import intern
from typing import Final

import msgspec

from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reflector import Key, Reflector
from tetrapod.machinery.gvk import GroupVersionResource, Object

_NONE: Final = frozenset[str]()
"""Shared by all nodes without finalizers."""


class _Owner(msgspec.Struct, rename="camel"):
    uid: str
    block_owner_deletion: bool | msgspec.UnsetType | None = msgspec.UNSET


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str | msgspec.UnsetType = msgspec.UNSET
    uid: str | msgspec.UnsetType = msgspec.UNSET
    namespace: str | msgspec.UnsetType = msgspec.UNSET
    owner_references: list[_Owner] | msgspec.UnsetType | None = msgspec.UNSET
    finalizers: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    deletion_timestamp: str | msgspec.UnsetType | None = msgspec.UNSET


class _Partial(msgspec.Struct):
    """The fields of an object that the garbage collector decodes.

    All others, above all managedFields, never become Python objects.
    """

    metadata: _Metadata


class Node(msgspec.Struct, gc=False, eq=False, frozen=True):
    """A node of the graph: the facts about one object of the cluster.

    It refers to its owners by uid, so nodes form no reference cycles and Python's cyclic collector can skip them.

    Attributes:
        namespace: "" for cluster-scoped objects.
        owners: pairs (uid, blockOwnerDeletion).
        deleting: whether it has a deletionTimestamp.
    """

    uid: str
    gvr: GroupVersionResource
    namespace: str
    name: str
    owners: tuple[tuple[str, bool], ...] = ()
    deleting: bool = False
    finalizers: frozenset[str] = _NONE


OnChange = Callable[[GroupVersionResource, Node | None, Node | None], None]
"""Called with (resource, old, new): None and new for an addition, old and None for a deletion."""


class NodeReflector(Reflector):
    """A reflector that keeps the nodes of one resource, by namespace and name, in `nodes`.

    Args:
        client: lists and watches the resource.
        gvr: the resource.
        changed: called synchronously for each change with (resource, old, new): old is None for an addition, new
            for a deletion.
    """

    def __init__(self, client: Client, gvr: GroupVersionResource, changed: OnChange) -> None:
        super().__init__(client, gvr, metadata_only=True, only=_Partial)
        self.nodes: dict[Key, Node] = {}
        self._changed = changed

    def _stored_keys(self) -> Collection[Key]:
        return self.nodes.keys()

    def _put(self, key: Key, obj: Object) -> None:
        # an object of an external server; without a uid no owner reference can refer to it
        if not obj["metadata"].get("uid"):
            return
        namespace, name = key
        node = _node(self.gvr, intern(namespace), name, obj["metadata"])
        key = node.namespace, name
        old = self.nodes.get(key)
        self.nodes[key] = node
        self._changed(self.gvr, old, node)

    def _remove(self, key: Key, obj: Object | None) -> None:
        self._changed(self.gvr, self.nodes.pop(key, None), None)


def _node(gvr: GroupVersionResource, namespace: str, name: str, metadata: Object) -> Node:
    owners = tuple(
        (owner["uid"], bool(owner.get("blockOwnerDeletion"))) for owner in metadata.get("ownerReferences") or ()
    )
    finalizers = metadata.get("finalizers")
    deleting = bool(metadata.get("deletionTimestamp"))
    return Node(metadata["uid"], gvr, namespace, name, owners, deleting, frozenset(finalizers) if finalizers else _NONE)
