"""`OwnershipGraph`: the graph of owners and dependents that the garbage collector works on, by uid.

Upstream: pkg/controller/garbagecollector/graph_builder.go
"""

from __future__ import annotations

from collections.abc import Callable

from tetrapod.core.controllers.ownership_nodes import Node, Owner
from tetrapod.machinery.metadata import ORPHAN_FINALIZER


class OwnershipGraph:
    """The objects of the cluster and the edges to their owners, which may not exist.

    Args:
        examine: called with the uid of each object that may have to be deleted or changed after a change of the graph.

    Attributes:
        nodes: the objects by uid.
        dependents: the uids of dependents by the uid of their owner, also of owners that do not exist.
        absent: the uids of owners that are known to be deleted and still have dependents.
        misplaced: the uids of dependents that began to refer to an owner of another namespace. The reader removes them.
    """

    def __init__(self, examine: Callable[[str], None]) -> None:
        self.nodes: dict[str, Node] = {}
        self.dependents: dict[str, set[str]] = {}
        self.absent: set[str] = set()
        self.misplaced: set[str] = set()
        self._examine = examine

    def put(self, old: Node | None, node: Node) -> None:
        """Add or replace a node and its edges to owners.

        The node is examined if it is being deleted with a finalizer of the collector, or if one of its owners may not
        keep it. Such an owner is not in the graph, has another name than the reference, or waits for its dependents.

        Upstream: processGraphChanges, addDependentToOwners
        """
        uid = node.uid
        self.absent.discard(uid)
        if uid not in self.nodes:
            self._report_misplaced_dependents(node)
        if old is None:  # or a node of the same object in another version
            old = self.nodes.get(uid)
        self.nodes[uid] = node
        owners = node.owners
        former = {owner.uid for owner in old.owners} if old is not None else set()
        if old is not None:
            for uid_of_owner in former.difference(owner.uid for owner in owners):
                self._unlink(uid_of_owner, uid)
            self._examine_released_owners(old, node)
        for owner in owners:
            self.dependents.setdefault(owner.uid, set()).add(uid)
            if owner.uid not in former and self._is_elsewhere(owner, node):
                self.misplaced.add(uid)
        is_deleted_with_policy = node.awaits_dependents or (node.deleting and ORPHAN_FINALIZER in node.finalizers)
        if is_deleted_with_policy or not all(self._keeps(owner, node) for owner in owners):
            self._examine(uid)

    def _report_misplaced_dependents(self, owner: Node) -> None:
        """Examine the dependents of a new node that are not in its namespace, and mark them as misplaced."""
        for uid in self.dependents.get(owner.uid, ()):
            dependent = self.nodes.get(uid)
            if dependent is not None and not owner.may_own_in(dependent.namespace):
                self.misplaced.add(uid)
                self._examine(uid)

    def _examine_released_owners(self, old: Node, new: Node) -> None:
        """Examine owners that an object no longer blocks, although it still refers to them.

        Upstream: addUnblockedOwnersToDeleteQueue
        """
        blocked = {owner.uid for owner in old.owners if owner.blocks}
        for owner in new.owners:
            if owner.uid in blocked and not owner.blocks and owner.uid in self.nodes:
                self._examine(owner.uid)

    def _is_elsewhere(self, owner: Owner, dependent: Node) -> bool:
        node = self.nodes.get(owner.uid)
        return node is not None and not node.may_own_in(dependent.namespace)

    def has_waiting_dependent(self, uid: str) -> bool:
        """Return whether a dependent of the object is being deleted and waits for its own dependents."""
        dependents = (self.nodes.get(dependent) for dependent in self.dependents.get(uid, ()))
        return any(node is not None and node.awaits_dependents for node in dependents)

    def _keeps(self, owner: Owner, dependent: Node) -> bool:
        """Return whether an owner is known to exist and to keep its dependent."""
        node = self.nodes.get(owner.uid)
        return (
            node is not None
            and node.coordinates == owner.coordinates
            and node.may_own_in(dependent.namespace)
            and not node.awaits_dependents
        )

    def _unlink(self, owner: str, dependent: str) -> None:
        """Remove the edge between two uids, and examine the owner, which may wait for this dependent."""
        dependents = self.dependents.get(owner)
        if dependents is None:
            return
        dependents.discard(dependent)
        if not dependents and owner not in self.nodes:
            del self.dependents[owner]
            self.absent.discard(owner)
        elif owner in self.nodes:
            self._examine(owner)

    def remove(self, node: Node) -> None:
        """Remove a node that was deleted, and its edges to owners, and examine its dependents."""
        if node.uid in self.nodes:
            self.absent.add(node.uid)
            self._remove(node)

    def forget(self, node: Node, successor: Node | None = None) -> None:
        """Remove a node whose resource is no longer watched, and examine its dependents, because it may still exist.

        Do nothing if the graph has another node for the object.

        Args:
            node: the node.
            successor: the node under the same name in another version, which replaces it if it is the same object.
        """
        if self.nodes.get(node.uid) is not node:
            return
        if successor is not None and successor.uid == node.uid:
            self.put(node, successor)
        else:
            self._remove(node)

    def _remove(self, node: Node) -> None:
        uid = node.uid
        del self.nodes[uid]
        self.misplaced.discard(uid)
        for owner in node.owners:
            self._unlink(owner.uid, uid)
        for dependent in self.dependents.get(uid, ()):
            self._examine(dependent)
        if not self.dependents.get(uid):
            self.dependents.pop(uid, None)
            self.absent.discard(uid)
