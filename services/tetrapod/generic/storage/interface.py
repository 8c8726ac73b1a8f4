"""The storage interface that the registry uses: cached, watchable objects of one resource, written under preconditions.

The `Cacher` (cacher/) implements `ResourceStorage` over a `Backend`. Keys are relative to the resource's prefix:
`ns/name`, or `name` for cluster-scoped resources.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/interfaces.go
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from tetrapod.generic.storage.presence import Presence
from tetrapod.machinery.gvk import GroupResource, Object


class Entry(Protocol):
    """One stored revision of one object, as JSON bytes in the storage version including `metadata.resourceVersion`.

    `raw` is the concatenation of `head` (the type: `{"kind":…,"apiVersion":…,`) and `item` (the rest). Entries are
    immutable and shared. `object()` returns a fresh copy that the caller may change; `peek()` returns the shared
    parsed object, which callers must not change. `representations` caches other encodings of the same revision (another
    version, a watch frame), so that each is made once. It is dropped together with the parsed object when the entry
    has not been used for a while.
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
    """The label and field selectors of a request.

    `matches` tests the labels first, because fields require parsing the object.
    """

    labels: Callable[[Mapping[str, str]], bool] | None = None
    fields: Callable[[Entry], bool] | None = None

    @property
    def empty(self) -> bool:
        """Whether the predicate matches every object."""
        return self.labels is None and self.fields is None

    def matches(self, entry: Entry) -> bool:
        """Return whether an object matches both selectors."""
        if self.labels is not None and not self.labels(entry.labels):
            return False
        return self.fields is None or self.fields(entry)


EVERYTHING = Predicate()


View: TypeAlias = Callable[[Sequence[Entry]], Awaitable[Sequence[Entry | None]]]
"""A function that returns entries in the form the request sees (another version), with None in place of each entry
that the predicate does not match in that form.
"""


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The parameters of a list. `prefix` is "" (all), "ns/" (a namespace) or a whole key (for metadata.name selectors).

    `resource_version` "" means most recent (consistent), "0" means any; `match` is resourceVersionMatch. If there is
    a `view`, it replaces the predicate, and the page contains the entries that the view returns.
    """

    prefix: str = ""
    predicate: Predicate = EVERYTHING
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: str = ""
    single: bool = False  # prefix is a whole key
    view: View | None = None


class ListPage(NamedTuple):
    """One page of a list. An empty `continue_token` marks the last page.

    `remaining` is the number of objects that follow, or None if it is unknown because there is a selector.
    """

    entries: list[Entry]
    resource_version: str
    continue_token: str
    remaining: int | None


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """The parameters of a watch.

    `resource_version` and `match` (resourceVersionMatch) are the client's values, unparsed.
    """

    prefix: str = ""
    predicate: Predicate = EVERYTHING
    resource_version: str = ""
    match: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None  # sendInitialEvents
    single: bool = False


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """A watch event. `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.

    - A DELETED entry is the last state that matched, with the resource version of the deletion.
    - A BOOKMARK has no entry, only `revision`; `initial_end` marks the bookmark that ends the initial events.
    - An ERROR has a `status`.
    - `previous` is the object that an ADDED or MODIFIED one replaced.
    """

    type: str
    entry: Entry | None
    revision: int
    initial_end: bool = False
    status: Object | None = None
    previous: Entry | None = None

    def showing(self, entry: Entry) -> WatchEvent:
        """Return the same event with the object in another form."""
        return WatchEvent(self.type, entry, self.revision)


Sink: TypeAlias = Callable[[Sequence[WatchEvent]], None]
"""A callback that takes events without waiting. All watches share an event and its entry, so encodings of it can be
shared too.
"""


class Watch(Protocol):
    """An open watch. The server may end it (slow client, shutdown, compaction).

    There are two ways to read it. Either iterate over its batches. Or, for many watches: iterate `initial()`, which
    applies back-pressure, then `subscribe` a sink and wait for `ended()`. The sink is called within the cacher's own
    step for every batch of changes, without a task switch per watch. It checks its own buffer and closes the watch
    when the client is slow.
    """

    def __aiter__(self) -> AsyncIterator[list[WatchEvent]]: ...

    def initial(self) -> AsyncIterator[list[WatchEvent]]:
        """Iterate over the initial events in chunks, ending with the bookmark that closes them.

        Continue with `subscribe`.
        """
        ...

    def subscribe(self, sink: Sink) -> None:
        """Pass the queued events to `sink` now, and every later batch as it happens."""
        ...

    async def ended(self) -> None:
        """Wait until the watch has ended for any reason."""
        ...

    def send_bookmark(self) -> None:
        """Deliver a bookmark with the current revision, after all events up to that revision."""
        ...

    def close(self) -> None:
        """End the watch."""
        ...


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The uid and resourceVersion that the object must have for a write to proceed; None means any."""

    uid: str | None = None
    resource_version: str | None = None

    @property
    def empty(self) -> bool:
        """Whether both are unset."""
        return self.uid is None and self.resource_version is None


class Updated(NamedTuple):
    """The new object that an update wants to store."""

    object: Object
    ttl: int | None = None  # seconds; None keeps the current TTL


TryUpdate: TypeAlias = Callable[[Object | None, "Entry | None"], Awaitable[Updated | None]]
"""A function from a copy of the stored object (None: absent) to the new object. It returns None to leave the object
unchanged, and is called again if another write came first.
"""


class KeyExists(Exception):
    """A create failed because the key exists."""


class KeyNotFound(Exception):
    """An update or delete failed because the key does not exist."""


class PreconditionFailed(Exception):
    """A uid or resourceVersion precondition does not hold. The text is upstream's ("Precondition failed: UID in …")."""


class TooOldResourceVersion(Exception):
    """The requested resourceVersion or continue token has been compacted.

    For a continue token, `fresh_token` continues the list inconsistently, at the current revision.
    """

    def __init__(self, message: str, fresh_token: str = "") -> None:
        super().__init__(message)
        self.fresh_token = fresh_token


class TooLargeResourceVersion(Exception):
    """The requested resourceVersion is in the future and was not reached in time."""

    def __init__(self, requested: int, current: int, retry_seconds: int = 1) -> None:
        super().__init__(f"Too large resource version: {requested}, current: {current}")
        self.requested, self.current, self.retry_seconds = requested, current, retry_seconds


class ResourceStorage(Protocol):
    """The objects of one resource. `metadata.resourceVersion` is removed from objects before they are stored.

    Every method raises `Unavailable` (backend.py) when the store does not answer.
    """

    async def get(self, key: str, resource_version: str = "") -> Entry | None:
        """Return the object, or None.

        `resource_version` "" means most recent, "0" means any, else at least this version.
        """
        ...

    async def list(self, query: ListQuery) -> ListPage:
        """Return one page of a list.

        Raises:
            TooOldResourceVersion: the version or continue token has been compacted.
            TooLargeResourceVersion: the version was not reached in time.
            ValueError: the version or token is malformed.
        """
        ...

    async def watch(self, query: WatchQuery) -> Watch:
        """Open a watch. A version that is too old is reported as an ERROR event, not as an exception.

        Raises:
            TooLargeResourceVersion: the version was not reached in time.
            ValueError: the version is malformed.
        """
        ...

    async def create(self, key: str, obj: Object, ttl: int = 0) -> Entry:
        """Store a new object, for `ttl` seconds (0: forever). Raises `KeyExists` if the key exists."""
        ...

    async def guaranteed_update(
        self,
        key: str,
        try_update: TryUpdate,
        *,
        preconditions: Preconditions = Preconditions(),
        allow_absent: bool = False,
    ) -> Entry:
        """Read the object, call `try_update`, and write the result.

        If the object has changed in between, try again. Nothing is written if the result equals the stored object.
        """
        ...

    async def delete(
        self,
        key: str,
        *,
        preconditions: Preconditions = Preconditions(),
        validate: Callable[[Entry], Awaitable[None]] | None = None,
    ) -> Entry:
        """Delete an object and return it with the resource version of the deletion.

        Args:
            validate: called with the object before the deletion; it may raise to reject the deletion.
        """
        ...

    async def count(self) -> int:
        """Return the number of objects."""
        ...

    def statistics(self) -> tuple[int, int] | None:
        """Return the number of objects and their average size in bytes, or None if the cache is not filled."""
        ...

    async def ready(self) -> None:
        """Wait until the cache is in step with the store."""
        ...

    async def close(self) -> None:
        """End all watches and background tasks."""
        ...


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """Where and how one resource is stored: below `/registry/` + `prefix`, as objects of `api_version` and `kind`."""

    prefix: str  # "pods", "services/specs", "minions", "example.com/widgets"
    api_version: str
    kind: str
    namespaced: bool = True
    packed: bool = False
    """Objects are large and seldom read, so the cache keeps them compressed."""

    @property
    def group_resource(self) -> GroupResource:
        """The resource's name as the EncryptionConfiguration uses it.

        For a few old resources it differs from the storage prefix.
        """
        named = UNUSUAL_PLACES.get(self.prefix)
        return named or GroupResource(self.api_version.rpartition("/")[0], self.prefix.rpartition("/")[2])


UNUSUAL_PLACES: Final = {
    "services/specs": GroupResource("", "services"),
    "services/endpoints": GroupResource("", "endpoints"),
    "controllers": GroupResource("", "replicationcontrollers"),
    "minions": GroupResource("", "nodes"),
    "ranges": GroupResource("", "servicenodeportallocations"),
    "ingress": GroupResource("networking.k8s.io", "ingresses"),
    "events": GroupResource("", "events"),  # both API groups that serve events store them here
}
"""Resources whose storage prefix differs from their name.

Upstream: pkg/kubeapiserver/default_storage_factory_builder.go, specialDefaultResourcePrefixes
"""


class StorageFactory(Protocol):
    """Provides the storage of each resource.

    It returns the same storage for the same prefix, so a process has one cache of each.
    """

    def resource(self, config: StorageConfig) -> ResourceStorage:
        """Return the storage of a resource."""
        ...

    def presence(self) -> Presence:
        """Return an observer of which resources have objects. The caller closes it."""
        ...

    async def drop(self, prefix: str) -> None:
        """End the watches and drop the cache of a resource that is no longer served."""
        ...

    async def close(self) -> None:
        """Close the storage of every resource."""
        ...
