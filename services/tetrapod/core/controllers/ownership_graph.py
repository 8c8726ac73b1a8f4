"""`OwnershipGraph`: the graph of owners and dependents that the garbage collector works on, by uid.

Upstream: pkg/controller/garbagecollector/graph_builder.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.core.controllers.ownership_nodes import Node, Owner

FOREGROUND: Final = "foregroundDeletion"
"""The finalizer of an object that waits until its dependents are deleted."""
ORPHAN: Final = "orphan"
"""The finalizer of an object whose dependents lose their references to it."""


class OwnershipGraph:
    """The objects of the cluster and the edges to their owners, which may not exist.

    Args:
        examine: called with the uid of each object that may have to be deleted or changed after a change of the graph.

    Attributes:
        nodes: the objects by uid.
        dependents: the uids of dependents by the uid of their owner, also of owners that do not exist.
        absent: the uids of owners that are known to be deleted.
    """

    def __init__(self, examine: Callable[[str], None]) -> None:
        self.nodes: dict[str, Node] = {}
        self.dependents: dict[str, set[str]] = {}
        self.absent: set[str] = set()
        self._examine = examine

    def put(self, old: Node | None, node: Node) -> None:
        """Add or replace a node and its edges to owners.

        The node is examined if it is being deleted with a finalizer of the collector, or if one of its owners may not
        keep it. Such an owner is not in the graph, has another name than the reference, or waits for its dependents.

        Upstream: processGraphChanges, addDependentToOwners
        """
        uid = node.uid
        self.absent.discard(uid)
        self.nodes[uid] = node
        owners = node.owners
        if old is not None:
            for former in {owner.uid for owner in old.owners}.difference(owner.uid for owner in owners):
                self._unlink(former, uid)
        for owner in owners:
            self.dependents.setdefault(owner.uid, set()).add(uid)
        if (node.deleting and node.finalizers & {FOREGROUND, ORPHAN}) or not all(
            self._keeps(owner, node) for owner in owners
        ):
            self._examine(uid)

    def _keeps(self, owner: Owner, dependent: Node) -> bool:
        """Return whether an owner is known to exist and to keep its dependent."""
        found = self.nodes.get(owner.uid)
        return (
            found is not None
            and found.coordinates == owner.coordinates
            and found.namespace in ("", dependent.namespace)
            and not (found.deleting and FOREGROUND in found.finalizers)
        )

    def _unlink(self, owner: str, dependent: str) -> None:
        """Remove the edge between two uids, and examine the owner, which may wait for this dependent."""
        dependents = self.dependents.get(owner)
        if dependents is None:
            return
        dependents.discard(dependent)
        if not dependents and owner not in self.nodes:
            del self.dependents[owner]
        elif owner in self.nodes:
            self._examine(owner)

    def remove(self, node: Node) -> None:
        """Remove a node and its edges to owners, and examine its dependents."""
        uid = node.uid
        if self.nodes.pop(uid, None) is None:
            return
        self.absent.add(uid)
        for owner in node.owners:
            self._unlink(owner.uid, uid)
        for dependent in self.dependents.get(uid, ()):
            self._examine(dependent)
        if not self.dependents.get(uid):
            self.dependents.pop(uid, None)
            self.absent.discard(uid)
