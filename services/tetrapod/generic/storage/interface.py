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
from tetrapod.machinery.table_rows import StoredRow


class Entry(Protocol):
    """One stored revision of one object, as JSON bytes in the storage version including `metadata.resourceVersion`.

    Entries are immutable, and all requests share them. `object()` returns a fresh copy that the caller may change;
    `peek()` returns the parsed object that all callers share and must not change.

    `representations` caches other encodings of the same revision (another version, a watch frame), so that each is made
    once. It is dropped together with the parsed object when the entry has not been used for a while.

    Attributes:
        key: the key relative to the resource's prefix.
        revision: the store's revision of the last write, which is the resource version.
        raw: the JSON of the whole object, the concatenation of `head` and `item`.
        head: the type: `{"kind":…,"apiVersion":…,`.
        item: the rest, from `"metadata"` on.
        size: the number of bytes of `item`, which may be compressed.
        representations: the cached encodings, by keys that their users choose.
        uid: metadata.uid; "" if the field is missing.
        labels: metadata.labels; empty if the field is missing. Callers must not change them.
        namespace: metadata.namespace; "" for a cluster-scoped object.
        name: metadata.name.
        indexed: the value of the field that the strategy of the resource indexes; None before its first use.
        message: the object in the storage version as a protobuf message; None before its first use. Unlike the other
            encodings it is kept as long as the entry: clients in Go list everything in protobuf.
        row: the row of the object in a Table; None before its first use. It is kept as long as the entry, too.
    """

    key: str
    revision: int
    indexed: str | None
    message: bytes | None
    row: StoredRow | None

    @property
    def raw(self) -> bytes: ...

    @property
    def head(self) -> bytes: ...

    @property
    def item(self) -> bytes: ...

    @property
    def size(self) -> int: ...

    @property
    def representations(self) -> dict[Any, Any]: ...

    def object(self) -> Object: ...
    def peek(self) -> Object: ...

    @property
    def uid(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


class IndexedValue(NamedTuple):
    """A value that selectors require of the field that the strategy of the resource indexes.

    Attributes:
        field: the name of the field.
        value: the value.
        of: returns the value that an entry has.
    """

    field: str
    value: str
    of: Callable[[Entry], str]

    def matches(self, entry: Entry) -> bool:
        """Return whether an entry has the value."""
        return self.of(entry) == self.value


@dataclass(frozen=True, slots=True)
class Predicate:
    """The selectors of a request, as functions that return whether an object matches.

    Attributes:
        labels: called with the labels of the object; None matches every object.
        fields: called with the object's entry; None matches every object.
        shard: called with the object's entry, before the others; None matches every object.
        index: the value of the indexed field that the selectors require; None if they require none. All objects that
            match have it.
    """

    labels: Callable[[Mapping[str, str]], bool] | None = None
    fields: Callable[[Entry], bool] | None = None
    shard: Callable[[Entry], bool] | None = None
    index: IndexedValue | None = None

    @property
    def empty(self) -> bool:
        """Whether the predicate matches every object."""
        return self.labels is None and self.fields is None and self.shard is None

    def matches(self, entry: Entry) -> bool:
        """Return whether an object matches all selectors.

        The labels are tested before the fields, which require parsing the object.
        """
        if self.shard is not None and not self.shard(entry):
            return False
        if self.labels is not None and not self.labels(entry.labels):
            return False
        return self.fields is None or self.fields(entry)

    @property
    def matcher(self) -> Callable[[Entry], bool]:
        """`matches`, or a function that returns the same in less time. Use it for many objects."""
        labels = self.labels
        if labels is None or self.fields is not None or self.shard is not None:
            return self.matches
        return lambda entry: labels(entry.labels)


EVERYTHING = Predicate()


View: TypeAlias = Callable[[Sequence[Entry]], Awaitable[Sequence[Entry | None]]]
"""A function that returns entries in the form the request sees (another version), with None in place of each entry
that the predicate does not match in that form.
"""


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The parameters of a list.

    - `prefix` is relative to the resource's prefix: "" (all objects), "ns/" (those of a namespace), or, if `single` is
      set, the whole key of one object (for metadata.name selectors).
    - `limit` 0 means no limit.
    - `resource_version` "" means most recent (consistent), "0" means any; `match` is resourceVersionMatch ("" if
      unset).
    - `continue_token` is the client's `continue` parameter; "" on the first page.
    - `view` converts entries to another version and then applies the selectors; None uses `predicate`. It is called
      with some of the entries and returns, for each, the converted entry, or None if it does not match.
    """

    prefix: str = ""
    predicate: Predicate = EVERYTHING
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: str = ""
    single: bool = False
    view: View | None = None


class ListPage(NamedTuple):
    """One page of a list, in key order.

    Attributes:
        entries: the objects of the page.
        resource_version: the resourceVersion of the list.
        continue_token: the token for the next page; "" on the last page.
        remaining: the number of objects after this page; None on the last page, or if a selector makes it unknown.
    """

    entries: list[Entry]
    resource_version: str
    continue_token: str
    remaining: int | None


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """The parameters of a watch.

    - `prefix` is relative to the resource's prefix: "" (all objects), "ns/" (those of a namespace), or, if `single` is
      set, the whole key of one object.
    - `predicate` has the selectors.
    - `resource_version` and `match` (resourceVersionMatch) are the client's values, unparsed.
    - `bookmarks` is allowWatchBookmarks.
    - `initial_events` is sendInitialEvents; None if the client did not set it.
    """

    prefix: str = ""
    predicate: Predicate = EVERYTHING
    resource_version: str = ""
    match: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None
    single: bool = False


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """A watch event. `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.

    - The entry of a DELETED event is the last state that matched the selectors, with the resource version of the change
      that removed it.
    - A BOOKMARK has no entry, only `revision`; `initial_end` marks the bookmark that ends the initial events.
    - An ERROR has no entry; `status` is the Status object to send.
    - `previous` is the state of the object before an ADDED or MODIFIED event. It is None if the object was created, and
      in initial events.
    """

    type: str
    entry: Entry | None
    revision: int
    initial_end: bool = False
    status: Object | None = None
    previous: Entry | None = None

    def showing(self, entry: Entry) -> WatchEvent:
        """Return an event with the same type and revision whose object is `entry`, without `previous` and `status`."""
        return WatchEvent(self.type, entry, self.revision)


Sink: TypeAlias = Callable[[Sequence[WatchEvent]], None]
"""A callback that takes events without waiting. All watches share an event and its entry, so encodings of it can be
shared too.
"""


class Watch(Protocol):
    """An open watch. The server may end it (slow client, shutdown, compaction).

    There are two ways to read it. The first is to iterate over it: each item is a list of events, the initial ones
    first.

    The second is cheaper for many watches: iterate over `initial()`, then `subscribe` a sink and wait for `ended()`.
    The sink is called directly when the cache applies a change, so no task has to wake up. It must not wait; it closes
    the watch if its client is slow.
    """

    def __aiter__(self) -> AsyncIterator[list[WatchEvent]]: ...

    def initial(self) -> AsyncIterator[list[WatchEvent]]:
        """Iterate over the initial events in chunks, as fast as the caller takes them. Then call `subscribe`.

        If the query asks for `initial_events` and `bookmarks`, the last event is a bookmark with `initial_end`. For a
        watch that resumes at a resource version, these are the events since then.
        """
        ...

    def subscribe(self, sink: Sink) -> None:
        """Call `sink` with a list of the events that have not been read yet, and from now on with lists of later ones.

        If the sink raises an exception, the watch is closed.
        """
        ...

    async def ended(self) -> None:
        """Wait until the watch has ended for any reason. Return at once if it has ended already."""
        ...

    def send_bookmark(self) -> None:
        """Queue a bookmark with the current revision, behind all events up to that revision.

        Do nothing if the watch has ended.
        """
        ...

    def close(self) -> None:
        """End the watch. Further calls have no effect."""
        ...


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The conditions under which a write proceeds.

    Attributes:
        uid: the uid that the object must have; None for any.
        resource_version: the resourceVersion that the object must have; None for any.
    """

    uid: str | None = None
    resource_version: str | None = None

    def check(self, entry: Entry | None) -> None:
        """Check that a stored entry has the required uid and resourceVersion; None is an absent object.

        Raises:
            PreconditionFailed: one of them is required and differs, or the object is absent; with upstream's text.
        """
        if self.uid is not None:
            uid = entry.uid if entry is not None else ""
            if uid != self.uid:
                raise PreconditionFailed(
                    f"Precondition failed: UID in precondition: {self.uid}, UID in object meta: {uid}"
                )
        if self.resource_version is not None:
            version = str(entry.revision) if entry is not None else ""
            if version != self.resource_version:
                raise PreconditionFailed(
                    f"Precondition failed: ResourceVersion in precondition: {self.resource_version}, ResourceVersion "
                    f"in object meta: {version}"
                )


class Updated(NamedTuple):
    """The new object that an update wants to store.

    Attributes:
        object: the object.
        ttl: its lifetime in seconds; 0 for no limit, None keeps the current one.
        large: whether to encode the object in a thread, because encoding it would block the event loop.
    """

    object: Object
    ttl: int | None = None
    large: bool = False


TryUpdate: TypeAlias = Callable[[Object | None, "Entry | None"], Awaitable[Updated | None]]
"""The function that computes an update.

It maps a copy of the stored object and its entry (both None: absent) to the new object, and may change the copy. It
returns None to leave the object unchanged. It is called again, with the new state, if another write came first.
"""


class KeyExists(Exception):
    """A create failed because the key exists."""


class KeyNotFound(Exception):
    """An update or delete failed because the key does not exist."""


class PreconditionFailed(Exception):
    """A uid or resourceVersion precondition does not hold. The text is upstream's ("Precondition failed: UID in …")."""


class TooOldResourceVersion(Exception):
    """The history of the requested resourceVersion or continue token has been compacted.

    Args:
        message: the text for the client.
        fresh_token: for a continue token, another one that continues the list at the current revision, so that its
            pages may be inconsistent; "" for a resourceVersion.
    """

    def __init__(self, message: str, fresh_token: str = "") -> None:
        super().__init__(message)
        self.fresh_token = fresh_token


class TooLargeResourceVersion(Exception):
    """The requested resourceVersion is higher than the store's, and the cache did not reach it within the time limit.

    Args:
        requested: the requested resourceVersion.
        current: the revision that has been reached.
        retry_seconds: the seconds that the client is asked to wait before it tries again.
    """

    def __init__(self, requested: int, current: int, retry_seconds: int = 1) -> None:
        super().__init__(f"Too large resource version: {requested}, current: {current}")
        self.requested, self.current, self.retry_seconds = requested, current, retry_seconds


class ResourceStorage(Protocol):
    """The objects of one resource. `metadata.resourceVersion` is removed from objects before they are stored.

    Keys are relative to the resource's prefix: `ns/name`, or `name` for cluster-scoped resources. Every method raises
    `Unavailable` (generic/lifecycle) when the store does not answer.
    """

    async def get(self, key: str, resource_version: str = "") -> Entry | None:
        """Return the object's entry, or None if it does not exist.

        Args:
            resource_version: "" means most recent (consistent), "0" means any, else at least this version.

        Raises:
            TooLargeResourceVersion: the version was not reached in time.
            ValueError: the version is malformed.
            Unreadable: the object cannot be decrypted or decoded.
        """
        ...

    async def list(self, query: ListQuery) -> ListPage:
        """Return one page of a list.

        Raises:
            TooOldResourceVersion: the version or continue token has been compacted.
            TooLargeResourceVersion: the version was not reached in time.
            ValueError: the version or token is malformed.
            Unreadable: the store answers the list, and objects in it cannot be decrypted or decoded.
        """
        ...

    async def watch(self, query: WatchQuery) -> Watch:
        """Open a watch, which the caller closes. A version that is too old is reported as an ERROR event.

        Raises:
            TooLargeResourceVersion: the version was not reached in time.
            ValueError: the version is malformed.
        """
        ...

    async def create(self, key: str, obj: Object, ttl: int = 0, *, large: bool = False) -> Entry:
        """Store a new object and return its entry. `obj` is not modified.

        Args:
            ttl: seconds after which the store deletes the object; 0 means never.
            large: whether to encode the object in a thread, because encoding it would block the event loop.

        Raises:
            KeyExists: the key exists.
            RequestTooLarge: the object exceeds the size limit of the store.
            CannotEncrypt: the object cannot be encrypted.
        """
        ...

    async def guaranteed_update(
        self,
        key: str,
        try_update: TryUpdate,
        *,
        preconditions: Preconditions = Preconditions(),
        allow_absent: bool = False,
    ) -> Entry:
        """Read the object, call `try_update`, write the result, and return the stored entry.

        If another write came first, try again. Nothing is written if the result equals the stored object. Exceptions of
        `try_update` are passed on, if the state that it was called with is the current one.

        Args:
            try_update: called with a copy of the stored object, which it may change, and its entry; both are None if
                the object is absent. It returns the new object, or None to leave the stored one unchanged.
            preconditions: checked against each state before `try_update` is called.
            allow_absent: call `try_update` with None if the key does not exist, in order to create it.

        Raises:
            KeyNotFound: the key does not exist, and `allow_absent` is not set or `try_update` returned None.
            PreconditionFailed: a precondition does not hold.
        """
        ...

    async def delete(
        self,
        key: str,
        *,
        preconditions: Preconditions = Preconditions(),
        validate: Callable[[Entry], Awaitable[None]] | None = None,
    ) -> Entry:
        """Delete an object and return its last state with the resource version of the deletion.

        Args:
            validate: called with the object before the deletion, again if it changes; it may raise to reject the
                deletion.

        Raises:
            KeyNotFound: the key does not exist.
            PreconditionFailed: a precondition does not hold.
        """
        ...

    async def delete_unreadable(
        self, key: str, *, dry_run: bool, readable: Callable[[Entry], Awaitable[bool]] | None = None
    ) -> None:
        """Delete an object that cannot be read.

        Args:
            dry_run: only check that the object would be deleted.
            readable: returns whether an object that was decoded can be read by requests; None if it always can.

        Raises:
            KeyNotFound: the key does not exist.
            Readable: the object can be read.
        """
        ...

    async def count(self) -> int:
        """Return the number of objects of the resource in all namespaces."""
        ...

    def statistics(self) -> tuple[int, int] | None:
        """Return the number of objects and their average size in bytes, or None if the cache is not filled."""
        ...

    async def ready(self) -> None:
        """Wait until the cache has been filled, starting to fill it if necessary.

        Raises:
            NotReady: the store contains values that cannot be read, so the cache cannot be filled.
        """
        ...

    async def close(self) -> None:
        """End all watches and background tasks. The store itself stays open."""
        ...


class Mistyped(Exception):
    """A stored object has a value of a wrong type; the text is that of upstream's decoder."""


class StoredDefaults(Protocol):
    """The defaults of the stored objects of one resource."""

    @property
    def exist(self) -> bool:
        """Whether the resource has defaults that stored objects may lack."""

    @property
    def may_change(self) -> bool:
        """Whether the defaults may change while objects are cached (those of custom resources)."""

    def complete(self, obj: Object) -> bool:
        """Set missing defaults in a stored object, in place. Return False if it is of another kind or version.

        Raises:
            Mistyped: a value has a wrong type.
        """


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """Where and how one resource is stored.

    Attributes:
        prefix: the keys are below `/registry/` and this, such as "pods", "services/specs" or "example.com/widgets".
        api_version: the apiVersion of objects in the cache, and of stored ones without `to_store`.
        kind: the kind of stored objects.
        namespaced: whether the namespace is part of the key.
        compressed: whether the cache keeps the objects compressed, because they are large and seldom read.
        cbor: whether objects are written as CBOR instead of JSON. Both are read.
        from_store: returns a stored JSON value in the version `api_version`, and the value itself if it has that
            version already; None if stored objects never have another version.
        to_store: returns the JSON of an object in the version in which it is stored; None if that is `api_version`.
            `from_store` must convert it back.
        defaults: sets the defaults that a stored object lacks; None if it has none.
    """

    prefix: str
    api_version: str
    kind: str
    namespaced: bool = True
    compressed: bool = False
    cbor: bool = False
    from_store: Callable[[bytes], bytes] | None = None
    to_store: Callable[[bytes], bytes] | None = None
    defaults: StoredDefaults | None = None

    @property
    def group_resource(self) -> GroupResource:
        """The resource's name as the EncryptionConfiguration and metrics use it.

        For a few resources it cannot be derived from the storage prefix (see `UNUSUAL_PLACES`).
        """
        named = UNUSUAL_PLACES.get(self.prefix)
        return named or GroupResource(self.api_version.rpartition("/")[0], self.prefix.rpartition("/")[2])

    @property
    def is_extension(self) -> bool:
        """Whether this is a custom resource, or the CustomResourceDefinitions or APIServices.

        Only their prefixes contain the group. As in kube-apiserver, flags about the storage of built-in resources do
        not apply to them.
        """
        resource = self.group_resource
        return self.prefix == f"{resource.group}/{resource.resource}"


UNUSUAL_PLACES: Final = {
    "services/specs": GroupResource("", "services"),
    "services/endpoints": GroupResource("", "endpoints"),
    "controllers": GroupResource("", "replicationcontrollers"),
    "minions": GroupResource("", "nodes"),
    "ranges": GroupResource("", "servicenodeportallocations"),
    "ingress": GroupResource("networking.k8s.io", "ingresses"),
    "events": GroupResource("", "events"),  # both API groups that serve events store them here
}
"""The resources by storage prefix, where this prefix and the apiVersion of stored objects do not give the name.

Upstream: pkg/kubeapiserver/default_storage_factory_builder.go, specialDefaultResourcePrefixes
"""


class StorageFactory(Protocol):
    """Provides the storage of each resource.

    It returns the same storage for the same prefix, so a process has one cache of each.
    """

    def resource(self, config: StorageConfig) -> ResourceStorage:
        """Return the storage of a resource, creating it at the first call for its prefix."""
        ...

    def presence(self) -> Presence:
        """Return a new `Presence`, which finds out which custom resources have objects. The caller closes it."""
        ...

    async def drop(self, prefix: str) -> None:
        """End the watches and drop the cache of a resource that is no longer served.

        The stored objects are not deleted. Do nothing if the resource has not been used.
        """
        ...

    async def close(self) -> None:
        """Close the storage of every resource. The store itself stays open."""
        ...
