"""Nodes of the garbage collector's graph, one for each object of the cluster.

A node has only the fields that the collector needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from sys import intern
from typing import Final

import msgspec

from tetrapod.core.controllers.discovered import DiscoveredResource
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reflector import Key, Reflector
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.metadata import FOREGROUND_FINALIZER

_NONE: Final = frozenset[str]()
"""Shared by all nodes without finalizers."""


class _Reference(msgspec.Struct, rename="camel"):
    uid: str
    api_version: str = ""
    kind: str = ""
    name: str = ""
    block_owner_deletion: bool | msgspec.UnsetType | None = msgspec.UNSET


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str | msgspec.UnsetType = msgspec.UNSET
    uid: str | msgspec.UnsetType = msgspec.UNSET
    namespace: str | msgspec.UnsetType = msgspec.UNSET
    owner_references: list[_Reference] | msgspec.UnsetType | None = msgspec.UNSET
    finalizers: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    deletion_timestamp: str | msgspec.UnsetType | None = msgspec.UNSET


class _Partial(msgspec.Struct):
    """The fields of an object that the garbage collector decodes.

    All others, above all managedFields, never become Python objects.
    """

    metadata: _Metadata


class Owner(msgspec.Struct, gc=False, eq=False, frozen=True):
    """A reference to an owner.

    Attributes:
        coordinates: as those of the node that it should refer to.
        blocks: its blockOwnerDeletion.
    """

    uid: str
    coordinates: str
    blocks: bool = False


class Node(msgspec.Struct, gc=False, eq=False, frozen=True):
    """A node of the graph: the facts about one object of the cluster.

    It refers to its owners by uid, so nodes form no reference cycles and Python's cyclic collector can skip them.

    Attributes:
        namespace: "" for cluster-scoped objects.
        deleting: whether it has a deletionTimestamp.
    """

    uid: str
    gvr: GroupVersionResource
    kind: str
    namespace: str
    name: str
    owners: tuple[Owner, ...] = ()
    deleting: bool = False
    finalizers: frozenset[str] = _NONE

    @property
    def coordinates(self) -> str:
        """The group, kind and name, in one string: references to owners are many, and each has its own."""
        return f"{self.gvr.group}/{self.kind}/{self.name}"

    @property
    def awaits_dependents(self) -> bool:
        """Whether the object is being deleted in the foreground, so that its dependents are deleted first."""
        return self.deleting and FOREGROUND_FINALIZER in self.finalizers

    def may_own_in(self, namespace: str) -> bool:
        """Return whether objects of a namespace may refer to the object as an owner; "" for cluster-scoped objects."""
        return self.namespace in ("", namespace)


OnChange = Callable[[GroupVersionResource, Node | None, Node | None], None]
"""Called with (resource, old, new): None and new for an addition, old and None for a deletion."""


class NodeReflector(Reflector):
    """A reflector that keeps the nodes of one resource, by namespace and name, in `nodes`.

    Args:
        client: lists and watches the resource.
        resource: the resource.
        changed: called synchronously for each change with (resource, old, new): old is None for an addition, new
            for a deletion.
    """

    def __init__(self, client: Client, resource: DiscoveredResource, changed: OnChange) -> None:
        super().__init__(client, resource.gvr, metadata_only=True, only=_Partial)
        self.nodes: dict[Key, Node] = {}
        self._kind = resource.kind.kind
        self._changed = changed

    def _stored_keys(self) -> Collection[Key]:
        return self.nodes.keys()

    def _put(self, key: Key, obj: Object) -> None:
        # an object of an external server; without a uid no owner reference can refer to it
        if not obj["metadata"].get("uid"):
            return
        namespace, name = key
        node = self._node(intern(namespace), name, obj["metadata"])
        key = node.namespace, name
        old = self.nodes.get(key)
        self.nodes[key] = node
        self._changed(self.gvr, old, node)

    def _remove(self, key: Key, obj: Object | None) -> None:
        self._changed(self.gvr, self.nodes.pop(key, None), None)

    def _node(self, namespace: str, name: str, metadata: Object) -> Node:
        owners = tuple(map(_owner, metadata.get("ownerReferences") or ()))
        finalizers = frozenset(metadata.get("finalizers") or ()) or _NONE
        deleting = bool(metadata.get("deletionTimestamp"))
        return Node(metadata["uid"], self.gvr, self._kind, namespace, name, owners, deleting, finalizers)


def _owner(reference: Object) -> Owner:
    group, _, _ = reference["apiVersion"].rpartition("/")
    coordinates = f"{group}/{reference['kind']}/{reference['name']}"
    return Owner(reference["uid"], coordinates, bool(reference.get("blockOwnerDeletion")))
