"""`Records`: all APIServices, and the snapshots that determine which requests go to external API servers.

A snapshot maps group-versions to APIServices. It is immutable, and every change creates a new one. Group-versions that
it does not contain are local.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tetrapod.aggregator.apiservice import by_priority, group_version, service_of
from tetrapod.machinery.gvk import Object


class Records:
    """All APIServices by name, and the routing data that is computed from them after each change.

    Attributes:
        generation: grows with every change.
        external: the external APIServices by (group, version). A change replaces the mapping.
        groups: pairs of a group and its APIServices, in the order of discovery; see `by_priority`.
    """

    def __init__(self) -> None:
        self._objects: dict[str, Object] = {}
        self._listeners: list[Callable[[], None]] = []
        self.generation = 0
        self.external: Mapping[tuple[str, str], Object] = MappingProxyType({})
        self.groups: tuple[tuple[str, tuple[Object, ...]], ...] = ()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change, when `external` and `groups` are up to date."""
        self._listeners.append(listener)

    def changed(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of the APIService informer: update the records and the routing data.

        The deletion of an APIService that was recreated since, with another uid, is ignored.

        Args:
            old: the object before the event; None if it was added.
            new: the object after the event; None if it was deleted.
        """
        if new is not None:
            self._objects[new["metadata"]["name"]] = new
        elif old is not None:
            stored = self._objects.get(old["metadata"]["name"])
            if stored is None or stored["metadata"].get("uid") != old["metadata"].get("uid"):
                return
            del self._objects[old["metadata"]["name"]]
        self._snapshot()

    def removed(self, name: str) -> None:
        """Remove an APIService that this process has deleted, without waiting for the watch event of the deletion."""
        if self._objects.pop(name, None) is not None:
            self._snapshot()

    def get(self, name: str) -> Object | None:
        """Return the APIService with this name, or None if it does not exist."""
        return self._objects.get(name)

    def objects(self) -> list[Object]:
        """Return all APIServices."""
        return list(self._objects.values())

    def names(self) -> list[str]:
        """Return the names of all APIServices."""
        return list(self._objects)

    def names_for_service(self, namespace: str, name: str) -> list[str]:
        """Return the names of the APIServices whose spec.service is this Service."""
        names = []
        for obj in self.external.values():
            service = service_of(obj)
            if service is not None and (service.get("namespace"), service.get("name")) == (namespace, name):
                names.append(obj["metadata"]["name"])
        return names

    def _snapshot(self) -> None:
        objects = [obj for obj in self._objects.values() if obj.get("spec")]
        external = {tuple(group_version(obj)): obj for obj in objects if service_of(obj) is not None}
        self.external = MappingProxyType({(g, v): obj for (g, v), obj in external.items()})
        self.groups = tuple((group, tuple(members)) for group, members in by_priority(objects))
        self.generation += 1
        for listener in self._listeners:
            listener()
