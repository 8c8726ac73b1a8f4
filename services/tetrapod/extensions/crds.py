"""`Crds`: this process's copy of all custom resource definitions, and what is often asked of one.

Fed by a watch of their storage, within the cacher's own step: whoever has read a definition from this process finds it here.
Handlers, controllers, discovery and OpenAPI read it. Upstream: the shared CRD informer and its lister.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tetrapod.extensions.conditions import ESTABLISHED, NAMES_ACCEPTED, TERMINATING
from tetrapod.generic.storage.following import follow
from tetrapod.generic.storage.interface import Entry, ResourceStorage, WatchEvent
from tetrapod.machinery.gvk import GroupVersion, Object

log = logging.getLogger(__name__)


class CrdVersion(NamedTuple):
    name: str
    served: bool
    storage: bool
    status: bool
    scale: bool


class Crd:
    """One revision of a definition. The whole object is the entry's: it is parsed again when it is needed."""

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
        """Raises ValueError for what is no definition."""
        found = _decode(entry.raw)
        meta, spec, status = found.metadata, found.spec, found.status or _Status()
        true = {c.type for c in status.conditions or () if c.status == "True"}
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
        self.established = ESTABLISHED in true
        self.names_accepted = NAMES_ACCEPTED in true
        self.terminating = self.deleting or TERMINATING in true

    def object(self) -> Object:
        """A copy, which the caller may change."""
        return self.entry.object()

    def version(self, name: str) -> CrdVersion | None:
        return next((v for v in self.versions if v.name == name), None)

    def serves(self, version: str) -> bool:
        found = self.version(version)
        return found is not None and found.served

    @property
    def storage_version(self) -> str:
        return next(v.name for v in self.versions if v.storage)

    @property
    def serving_key(self) -> tuple[Any, ...]:
        """What the serving of its objects depends on: all else is status."""
        return (self.uid, self.generation, self.accepted)


class Names(NamedTuple):
    plural: str
    singular: str
    kind: str
    list_kind: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]

    @classmethod
    def of(cls, names: Object) -> Names:
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
    return CrdVersion(version.name, version.served, version.storage, sub.get("status") is not None, sub.get("scale") is not None)


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
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
    """What is looked at all the time: schemas are skipped, they can be large."""

    metadata: _Metadata
    spec: _Spec
    status: _Status | None = None


_decode = msgspec.json.Decoder(_Definition).decode


OnCrd = Callable[["Crd | None", "Crd | None"], None]
"""Called with (old, new): None and new for an addition, old and None for a deletion. It must not wait."""


class Crds:
    def __init__(self, storage: ResourceStorage) -> None:
        self._storage = storage
        self._by_name: dict[str, Crd] = {}
        self.listeners: list[OnCrd] = []
        self.synced = asyncio.Event()
        self.generation = 0  # changes with every change
        self._served: tuple[int, dict[GroupVersion, list[Crd]]] = (-1, {})

    def __iter__(self) -> Iterator[Crd]:
        return iter(list(self._by_name.values()))

    def get(self, name: str) -> Crd | None:
        return self._by_name.get(name)

    def served(self) -> dict[GroupVersion, list[Crd]]:
        """What discovery tells of: established definitions by the group-versions that they serve, sorted by plural."""
        if self._served[0] != self.generation:
            found: dict[GroupVersion, list[Crd]] = {}
            for crd in sorted(self._by_name.values(), key=lambda crd: crd.plural):
                if crd.established:
                    for version in crd.versions:
                        if version.served:
                            found.setdefault(GroupVersion(crd.group, version.name), []).append(crd)
            self._served = (self.generation, found)
        return self._served[1]

    async def fresh(self, name: str) -> Crd | None:
        """The definition as it is now, whoever wrote it: for when the copy would make us refuse."""
        entry = await self._storage.get(name)
        if entry is None:
            return None
        known = self._by_name.get(name)
        return known if known is not None and known.entry.revision >= entry.revision else Crd(entry)

    async def run(self) -> None:
        """Follow the storage until cancelled."""
        await follow(self._storage, self, "custom resource definitions")

    def known(self) -> Collection[str]:
        return self._by_name.keys()

    def drop(self, key: str) -> None:
        self._put(key, None)

    def apply(self, events: Sequence[WatchEvent]) -> None:
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
