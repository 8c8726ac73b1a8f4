"""This process's copy of all CustomResourceDefinitions, with the fields that are often used in parsed form.

A watch of the storage updates it in the same step of the event loop in which the watch cache applies an event. A client
that has read a definition from this process therefore finds the same revision here. Handlers, controllers, discovery
and OpenAPI use it.

Upstream: the shared CRD informer and its lister.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tetrapod.extensions.conditions import ESTABLISHED, NAMES_ACCEPTED, TERMINATING
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.following import follow
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.generic.storage.watch import WatchEvent
from tetrapod.machinery.gvk import GroupVersion, Object

log = logging.getLogger(__name__)


class CrdVersion(NamedTuple):
    """One entry of spec.versions of a definition.

    Attributes:
        name: its name.
        served: whether it is served.
        storage: whether it is the storage version.
        status: whether it has the subresource status.
        scale: whether it has the subresource scale.
    """

    name: str
    served: bool
    storage: bool
    status: bool
    scale: bool


class Crd:
    """One revision of a definition: its often used fields in parsed form, and the entry with the whole object.

    Attributes:
        names: spec.names.
        accepted: status.acceptedNames.
        established: whether the condition Established is True.
        names_accepted: whether the condition NamesAccepted is True.
        deleting: whether deletionTimestamp is set.
        terminating: whether deletionTimestamp is set or the condition Terminating is True.
        entry: the stored entry.
        name: metadata.name, `plural.group`.
        uid: metadata.uid.
        generation: metadata.generation.
        group: spec.group.
        plural: spec.names.plural.
        namespaced: whether spec.scope is Namespaced.
        versions: the entries of spec.versions, in order.
    """

    __slots__ = (
        "accepted",
        "deleting",
        "entry",
        "established",
        "generation",
        "group",
        "name",
        "names",
        "names_accepted",
        "namespaced",
        "plural",
        "terminating",
        "uid",
        "versions",
    )

    def __init__(self, entry: Entry) -> None:
        """Decode a stored definition.

        Raises:
            ValueError, KeyError, TypeError: the stored object is not a definition.
        """
        decoded = _decode(entry.raw)
        meta, spec, status = decoded.metadata, decoded.spec, decoded.status or _Status()
        true_conditions = {c.type for c in status.conditions or () if c.status == "True"}
        self.entry = entry
        self.name = meta.name
        self.uid = meta.uid
        self.generation = meta.generation
        self.deleting = bool(meta.deletion_timestamp)
        self.group = spec.group
        self.plural: str = spec.names["plural"]
        self.namespaced = spec.scope == "Namespaced"
        self.versions = tuple(_version(v) for v in spec.versions)
        self.names = Names.of(spec.names)
        self.accepted = Names.of(status.accepted_names or {})
        self.established = ESTABLISHED in true_conditions
        self.names_accepted = NAMES_ACCEPTED in true_conditions
        self.terminating = self.deleting or TERMINATING in true_conditions

    def object(self) -> Object:
        """Return a copy of the whole object, which the caller may modify."""
        return self.entry.object()

    def version(self, name: str) -> CrdVersion | None:
        """Return the version of that name, served or not, or None."""
        return next((v for v in self.versions if v.name == name), None)

    def serves(self, version: str) -> bool:
        """Return whether the version exists and is served."""
        declared = self.version(version)
        return declared is not None and declared.served

    @property
    def storage_version(self) -> str:
        """The name of the version in which objects are stored."""
        return next(v.name for v in self.versions if v.storage)

    @property
    def serving_key(self) -> tuple[Any, ...]:
        """A key that is equal for two revisions if they serve custom resources alike.

        It consists of uid, generation and accepted names. A definition that was written past the API may have no
        generation. Its revision stands in for that, so every write changes the key.
        """
        return (self.uid, self.generation or self.entry.revision, self.accepted)


class Names(NamedTuple):
    """The names of a custom resource: the fields of spec.names or status.acceptedNames. Unset ones are "" or ()."""

    plural: str
    singular: str
    kind: str
    list_kind: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]

    @classmethod
    def of(cls, names: Object) -> Names:
        """Return the names in a spec.names or status.acceptedNames; unset names become "" or ()."""
        return cls(
            names.get("plural") or "",
            names.get("singular") or "",
            names.get("kind") or "",
            names.get("listKind") or "",
            tuple(names.get("shortNames") or ()),
            tuple(names.get("categories") or ()),
        )


def _version(version: _Version) -> CrdVersion:
    sub = version.subresources or {}
    return CrdVersion(
        version.name, version.served, version.storage, sub.get("status") is not None, sub.get("scale") is not None
    )


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str = ""  # objects that were written past the API may have none
    generation: int = 0
    deletion_timestamp: str | None = None


class _Version(msgspec.Struct):
    name: str
    served: bool
    storage: bool
    subresources: Object | None = None


class _Spec(msgspec.Struct):
    group: str
    names: Object
    scope: str
    versions: list[_Version]


class _Condition(msgspec.Struct):
    type: str
    status: str = ""


class _Status(msgspec.Struct, rename="camel"):
    conditions: list[_Condition] | None = None
    accepted_names: Object | None = None


class _Definition(msgspec.Struct):
    """The often used fields of a definition. Its schemas are not decoded, because they can be large."""

    metadata: _Metadata
    spec: _Spec
    status: _Status | None = None


_decode = msgspec.json.Decoder(_Definition).decode


OnCrd = Callable[["Crd | None", "Crd | None"], None]
"""A listener that is called with the old and the new definition. Old is None for an addition, new for a deletion. It
must not block.
"""


class Crds:
    """All definitions by name, updated by `run`. Iterating yields them in no particular order.

    It implements `ReflectorStore`.

    Attributes:
        listeners: functions that are called with the old and the new definition after each change. Old is None for an
            addition, new for a deletion. They must not block.
        synced: an event that `run` sets once all stored definitions have been read.
        generation: a number that grows with each change; not metadata.generation.

    Args:
        storage: the storage of the definitions.
    """

    def __init__(self, storage: ResourceStorage) -> None:
        self._storage = storage
        self._by_name: dict[str, Crd] = {}
        self.listeners: list[OnCrd] = []
        self.synced = asyncio.Event()
        self.generation = 0
        self._served: tuple[int, dict[GroupVersion, list[Crd]]] = (-1, {})

    def __iter__(self) -> Iterator[Crd]:
        return iter(list(self._by_name.values()))

    def get(self, name: str) -> Crd | None:
        """Return a definition by name, or None."""
        return self._by_name.get(name)

    def served(self) -> dict[GroupVersion, list[Crd]]:
        """Return the established definitions by the group-versions that they serve, each list sorted by plural.

        The result is cached until the next change; callers must not modify it.
        """
        if self._served[0] != self.generation:
            by_group_version: dict[GroupVersion, list[Crd]] = {}
            for crd in sorted(self._by_name.values(), key=lambda crd: crd.plural):
                if crd.established:
                    for version in crd.versions:
                        if version.served:
                            by_group_version.setdefault(GroupVersion(crd.group, version.name), []).append(crd)
            self._served = (self.generation, by_group_version)
        return self._served[1]

    async def fresh(self, name: str) -> Crd | None:
        """Return the current definition from storage, or None if it does not exist.

        Callers use it before they return an error that a stale local copy could have caused.

        Raises:
            ValueError, KeyError, TypeError: the stored object is not a definition.
        """
        entry = await self._storage.get(name)
        if entry is None:
            return None
        local = self._by_name.get(name)
        return local if local is not None and local.entry.revision >= entry.revision else Crd(entry)

    async def run(self) -> None:
        """Copy the definitions from the storage and follow its changes, until cancelled."""
        await follow(self._storage, self, "custom resource definitions")

    def stored_keys(self) -> Collection[str]:
        """Return a view of the names of all definitions, which are their storage keys.

        Implements `ReflectorStore.stored_keys`.
        """
        return self._by_name.keys()

    def drop(self, key: str) -> None:
        """Remove a definition that the storage no longer has, and call the listeners. Implements `ReflectorStore.drop`.

        Args:
            key: the name of the definition.
        """
        self._put(key, None)

    def apply(self, events: Sequence[WatchEvent]) -> None:
        """Apply watch events of the storage in order, and call the listeners for each change.

        Implements `ReflectorStore.apply`.
        """
        for event in events:
            if event.entry is not None:
                self._put(event.entry.key, None if event.type == "DELETED" else event.entry)

    def _put(self, name: str, entry: Entry | None) -> None:
        old = self._by_name.get(name)
        if entry is not None and old is not None and old.entry.revision >= entry.revision:
            return
        new: Crd | None = None
        if entry is None:
            self._by_name.pop(name, None)
        else:
            try:
                new = self._by_name[name] = Crd(entry)
            except (KeyError, TypeError, ValueError) as error:
                log.error("custom resource definition %s is malformed: %r", name, error)
                return
        self.generation += 1
        if old is None and new is None:
            return
        for listener in self.listeners:
            listener(old, new)
