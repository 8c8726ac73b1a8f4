"""What a registry store sees of storage: objects of one resource, cached, watched and guarded by preconditions.

The `Cacher` (cacher/) implements `ResourceStorage` over a `Backend`. Keys here are relative to the resource's prefix:
`ns/name`, or `name` for cluster-scoped resources. Follows k8s.io/apiserver/pkg/storage/interfaces.go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from tetrapod.generic.storage.presence import Presence
from tetrapod.machinery.gvk import GroupResource, Object


class Entry(Protocol):
    """One stored revision of one object, as finished JSON bytes in its storage version, `metadata.resourceVersion` spliced in.

    `raw` is `head` and `item` together: `head` says what the object is, `{"kind":…,"apiVersion":…,`; `item` is the rest.
    Entries are immutable and shared; `object()` hands out a fresh copy that its caller may change; `peek()` the shared
    parse, which nobody may change. `representations` keeps other finished bytes of the same revision (another version, a
    watch frame), so that each is made once; like the shared parse it is dropped when the entry has grown cold.
    """

    key: str
    revision: int

    @property
    def raw(self) -> bytes: ...

    @property
    def head(self) -> bytes: ...

    @property
    def item(self) -> bytes: ...

    @property
    def representations(self) -> dict[Any, Any]: ...

    def object(self) -> Object: ...
    def peek(self) -> Object: ...

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Predicate:
    """Which objects are wanted. `matches` looks only as deep as it must (labels first, then fields)."""

    labels: Callable[[Mapping[str, str]], bool] | None = None
    fields: Callable[[Entry], bool] | None = None

    @property
    def empty(self) -> bool:
        return self.labels is None and self.fields is None

    def matches(self, entry: Entry) -> bool:
        if self.labels is not None and not self.labels(entry.labels):
            return False
        return self.fields is None or self.fields(entry)


EVERYTHING = Predicate()


@dataclass(frozen=True, slots=True)
class ListQuery:
    """`prefix` is "" (all), "ns/" (a namespace) or a whole key (one object, as metadata.name selectors ask).

    `resource_version` "" is most recent (consistent), "0" is any; `match` is resourceVersionMatch.
    """

    prefix: str = ""
    predicate: Predicate = EVERYTHING
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: str = ""
    single: bool = False  # prefix is a whole key


class ListPage(NamedTuple):
    """Without a `continue_token` it is the end of the list. `remaining` is how many follow, None where that is not known (a selector)."""

    entries: list[Entry]
    resource_version: str
    continue_token: str
    remaining: int | None


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """What a client asks for; `resource_version` and `match` (resourceVersionMatch) are as it wrote them."""

    prefix: str = ""
    predicate: Predicate = EVERYTHING
    resource_version: str = ""
    match: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None  # sendInitialEvents
    single: bool = False


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """`type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.

    A DELETED entry is the last state that matched, carrying the revision of the deletion. A BOOKMARK has no entry but
    `revision`; with `initial_end` it ends the initial events. An ERROR has `status`.
    """

    type: str
    entry: Entry | None
    revision: int
    initial_end: bool = False
    status: Object | None = None

    def showing(self, entry: Entry) -> WatchEvent:
        """The same event of an object that is shown in another form."""
        return WatchEvent(self.type, entry, self.revision)


Sink: TypeAlias = Callable[[Sequence[WatchEvent]], None]
"""Takes events at once: no waiting. An event (and its entry) is shared by all watches, so what is made of it can be too."""


class Watch(Protocol):
    """An open watch; it ends by itself when the server sheds it (slow, shutdown, compaction).

    Read it by iterating for batches. Or, where many watch: iterate `initial()`, with back-pressure, then `subscribe` a sink, which is
    called within the cacher's own step for every batch of changes (no task switch per watch), and wait for `ended()`.
    A sink looks at its own buffer and closes the watch when its client is slow.
    """

    def __aiter__(self) -> AsyncIterator[list[WatchEvent]]: ...

    def initial(self) -> AsyncIterator[list[WatchEvent]]:
        """The initial events in chunks, with the bookmark that ends them. Then nothing more: go on with `subscribe`."""
        ...

    def subscribe(self, sink: Sink) -> None:
        """Hand what has queued up to `sink` now, and from here on every batch of events as it happens."""
        ...

    async def ended(self) -> None:
        """Returns once the watch has ended, whoever ended it."""
        ...

    def bookmark(self) -> WatchEvent:
        """A bookmark of this moment, for before a timeout (upstream sends one 2 s ahead)."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Preconditions:
    """Of a write: the uid and resourceVersion that the object must have; None asks for nothing."""

    uid: str | None = None
    resource_version: str | None = None

    @property
    def empty(self) -> bool:
        return self.uid is None and self.resource_version is None


class Updated(NamedTuple):
    """What shall be stored."""

    object: Object
    ttl: int | None = None  # seconds; None keeps what is there


TryUpdate: TypeAlias = Callable[[Object | None, "Entry | None"], Awaitable[Updated | None]]
"""Given a copy of what is stored (None: absent), what shall be stored; None leaves it as it is. Called again on a race."""


class KeyExists(Exception):
    """Create of a key that is there."""


class KeyNotFound(Exception):
    """Update or delete of a key that is not there."""


class PreconditionFailed(Exception):
    """A uid or resourceVersion precondition does not hold; the text is upstream's ("Precondition failed: UID in …")."""


class TooOldResourceVersion(Exception):
    """The resourceVersion or continue token asked for is compacted. For a token, `fresh_token` restarts inconsistently."""

    def __init__(self, message: str, fresh_token: str = "") -> None:
        super().__init__(message)
        self.fresh_token = fresh_token


class TooLargeResourceVersion(Exception):
    """The resourceVersion asked for lies in the future beyond patience."""

    def __init__(self, asked: int, current: int, retry_seconds: int = 1) -> None:
        super().__init__(f"Too large resource version: {asked}, current: {current}")
        self.asked, self.current, self.retry_seconds = asked, current, retry_seconds


class ResourceStorage(Protocol):
    """Objects of one resource. `metadata.resourceVersion` of what is passed in is dropped before it is stored.

    Raises `Unavailable` (backend.py) when the store does not answer.
    """

    async def get(self, key: str, resource_version: str = "") -> Entry | None: ...

    async def list(self, query: ListQuery) -> ListPage:
        """Raises TooOldResourceVersion, TooLargeResourceVersion, ValueError (a bad token or version)."""
        ...

    async def watch(self, query: WatchQuery) -> Watch:
        """Raises TooLargeResourceVersion, ValueError; a version too old comes as an ERROR event."""
        ...

    async def create(self, key: str, obj: Object, ttl: int = 0) -> Entry: ...

    async def guaranteed_update(
        self, key: str, try_update: TryUpdate, *, preconditions: Preconditions = Preconditions(), allow_absent: bool = False
    ) -> Entry:
        """Read, let `try_update` change, write if nobody else has; again if somebody has. No write when nothing changed."""
        ...

    async def delete(
        self,
        key: str,
        *,
        preconditions: Preconditions = Preconditions(),
        validate: Callable[[Entry], Awaitable[None]] | None = None,
    ) -> Entry:
        """Returns the deleted object, carrying the deletion's revision. `validate` may refuse by raising."""
        ...

    async def count(self) -> int: ...

    def statistics(self) -> tuple[int, int] | None:
        """How many objects there are, and about how many bytes each has; None before it is known."""
        ...

    async def ready(self) -> None:
        """Returns once the cache is in step with the store."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """How one resource is stored: `/registry/` + `prefix` + key; objects are of `api_version` and `kind`."""

    prefix: str  # "pods", "services/specs", "minions", "example.com/widgets"
    api_version: str
    kind: str
    namespaced: bool = True
    packed: bool = False
    """Objects are large and seldom read: they are kept compressed."""

    @property
    def group_resource(self) -> GroupResource:
        """As the configuration of encryption names it. The place in the store is called otherwise for a few old resources."""
        named = UNUSUAL_PLACES.get(self.prefix)
        return named or GroupResource(self.api_version.rpartition("/")[0], self.prefix.rpartition("/")[2])


UNUSUAL_PLACES: Final = {
    "services/specs": GroupResource("", "services"),
    "services/endpoints": GroupResource("", "endpoints"),
    "controllers": GroupResource("", "replicationcontrollers"),
    "minions": GroupResource("", "nodes"),
    "ranges": GroupResource("", "servicenodeportallocations"),
    "ingress": GroupResource("networking.k8s.io", "ingresses"),
    "events": GroupResource("", "events"),  # of both groups that serve them
}
"""Resources whose place in the store is called otherwise than they are.

Upstream: specialDefaultResourcePrefixes of pkg/kubeapiserver/default_storage_factory_builder.go.
"""


class StorageFactory(Protocol):
    """Hands out the storage of each resource; asked twice for one prefix it gives the same (so one cache per process)."""

    def resource(self, config: StorageConfig) -> ResourceStorage: ...

    def presence(self) -> Presence:
        """Tells which resources have objects. The caller closes it."""
        ...

    async def drop(self, prefix: str) -> None:
        """A resource is no longer served: end its watches, forget its cache."""
        ...

    async def close(self) -> None: ...
