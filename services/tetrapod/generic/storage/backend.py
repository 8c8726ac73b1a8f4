"""`Backend`: the interface of a revisioned key-value store with etcd's semantics. `etcd/` and `sqlite/` implement it.

One contract test suite (tests/integration/storage/) runs over both implementations. Keys are full paths
(`/registry/pods/ns/a`), and a range is the half-open interval [start, end). Every write, including a deletion, gets
the next revision. The cacher is the only caller on hot paths.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from posixpath import normpath
from typing import NamedTuple, Protocol

from tetrapod.generic.lifecycle import Unavailable


class KeyValue(NamedTuple):
    """One stored key with its value and revisions, as in etcd's API.

    Attributes:
        key: the whole key.
        value: the stored bytes.
        mod_revision: the revision of the last write.
        create_revision: the revision at which the key was created.
        lease: the ID of its lease; 0 if the key does not expire.
    """

    key: str
    value: bytes
    mod_revision: int
    create_revision: int
    lease: int = 0


class StaleKeyValue(KeyValue):
    """A key whose value is correct but must be rewritten at the next write, even if that write changes nothing.

    Encryption at rest uses it for values that were encrypted with an old key or provider.
    """


class UnreadableKeyValue(KeyValue):
    """A key of a range whose value cannot be decrypted. `value` has the reason, in UTF-8."""


class Range(NamedTuple):
    """The keys of a range up to the limit, in key order.

    Attributes:
        kvs: the keys with their values; an `UnreadableKeyValue` for each that cannot be decrypted.
        more: whether the limit cut the result short.
        total: the number of keys in the whole range; unspecified unless the read asked for it.
        revision: the revision of the store at the time of the read.
    """

    kvs: Sequence[KeyValue]
    more: bool
    total: int
    revision: int


class WriteResult(NamedTuple):
    """The outcome of a conditional write.

    If it succeeded, `revision` is that of the write and `current` is unspecified. If the comparison failed, nothing was
    written and `current` is the stored value (None: the key is absent).
    """

    succeeded: bool
    revision: int
    current: KeyValue | None


class BackendEvent(NamedTuple):
    """One change of one key.

    Attributes:
        key: the whole key.
        value: the new value; None for a deletion.
        revision: the revision of the change.
        previous: the key before the change. It is None if the key was created, if the watch does not ask for previous
            values, or if the history has been compacted.
        created: whether the key did not exist before.
        lease: the ID of the key's lease; 0 if it does not expire.
    """

    key: str
    value: bytes | None
    revision: int
    previous: KeyValue | None
    created: bool
    lease: int = 0


class WatchBatch(NamedTuple):
    """Events of complete revisions, in order: a batch never ends between two events of one revision.

    A batch without events is a progress notification: every event up to `revision` has been delivered.
    """

    events: Sequence[BackendEvent]
    revision: int


class Compacted(Exception):
    """The requested revision has been compacted. `revision` is the compaction revision."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"required revision has been compacted: {revision}")
        self.revision = revision


class FutureRevision(Exception):
    """The requested revision is greater than the current revision of the store."""


class CannotOpen(Exception):
    """The store cannot be opened; the text gives the reason."""


class RequestTooLarge(Exception):
    """The value is larger than the store accepts (etcd: 1.5 MiB). The text is etcd's, or that of its Go client."""

    def __init__(self, text: str = "etcdserver: request is too large") -> None:
        super().__init__(text)


class NoSpace(Unavailable):
    """The store has no space for the value, and did not write it. The text is etcd's, or that of the embedded store."""


class LeaseNotFound(Exception):
    """The lease does not exist any more."""

    def __init__(self) -> None:
        super().__init__("etcdserver: requested lease not found")


class BackendWatch(Protocol):
    """An open watch. Iterating it yields events as `WatchBatch` objects, in the order of their revisions.

    A batch without events is a progress notification. The iteration ends by raising `Compacted` or `Unavailable`.
    """

    def __aiter__(self) -> AsyncIterator[WatchBatch]: ...

    async def __anext__(self) -> WatchBatch: ...

    def next_if_ready(self) -> WatchBatch | None:
        """Return and consume the next batch if it is available without waiting, else None. It raises no errors."""
        ...

    def request_progress(self) -> None:
        """Ask the store for a progress notification (a `WatchBatch` without events) on this watch.

        The store may ignore a request, such as one before the watch has caught up.
        """
        ...

    @property
    def progress(self) -> int:
        """The revision up to which the iterator has returned every event. Reading it does no I/O."""
        ...


class Backend(Protocol):
    """A revisioned key-value store. Every method raises `Unavailable` when the store does not answer in time."""

    async def get(self, key: str) -> KeyValue | None:
        """Read one key, linearizably. Return None if it does not exist.

        A key with surrogates (which replace bytes that are not UTF-8) cannot exist, so the result is None.
        """
        ...

    async def range(
        self,
        start: str,
        end: str,
        *,
        limit: int = 0,
        revision: int = 0,
        keys_only: bool = False,
        count_only: bool = False,
        counted: bool = True,
    ) -> Range:
        """Read the keys of [start, end), in key order.

        Args:
            limit: maximum number of keys; 0 means all.
            revision: read the state at this revision; 0 means the current state (linearizable).
            keys_only: leave the values empty.
            count_only: return no keys, only `Range.total`.
            counted: fill in `Range.total`. SQLite has to visit every key of the range for that. A caller that reads a
                large range in pages passes False, so that the cost of a page depends only on its size.

        Raises:
            Compacted: `revision` is older than the history.
            FutureRevision: `revision` has not been reached.
        """
        ...

    async def put_if(
        self, key: str, value: bytes, expected: int, *, lease: int = 0, deleting: bool = False
    ) -> WriteResult:
        """Write the value if the key's mod revision is `expected` (0: the key is absent).

        Args:
            key: the whole key.
            value: the bytes to store.
            expected: the mod revision that the key must have.
            lease: the ID of the lease at whose end the key is deleted; 0 means that it does not expire.
            deleting: whether the write belongs to the deletion of the object. The embedded store has a reserve for
                such writes.

        Returns:
            The result with the revision of the write. If the key has another mod revision, nothing is written:
            `succeeded` is False, and `current` is the stored value, or None for an absent key.

        Raises:
            RequestTooLarge: the value exceeds the limit of the store.
            LeaseNotFound: `lease` has expired.
            NoSpace: the store is full.
            Unavailable: the store does not answer in time. The value may have been written nevertheless.
        """
        ...

    async def delete_if(self, key: str, expected: int) -> WriteResult:
        """Delete the key if its mod revision is `expected`.

        Returns:
            The result with the revision of the deletion. If the key is absent or has another mod revision, nothing is
            deleted: `succeeded` is False, and `current` is the stored value, or None for an absent key.
        """
        ...

    async def revision(self) -> int:
        """Return the current revision, linearizably: it includes every write that was acknowledged before this call."""
        ...

    def watch(
        self, start: str, end: str, from_revision: int, *, previous: bool = True
    ) -> AbstractAsyncContextManager[BackendWatch]:
        """Watch [start, end) from `from_revision` on, inclusive; 0 means from now on.

        The watch is open inside the context.

        Args:
            previous: include the previous value in the events.
        """
        ...

    def history(self, start: str, end: str, first: int, last: int) -> AsyncGenerator[Sequence[BackendEvent], None]:
        """Read the events of the revisions `first` to `last`, inclusive, with previous values, in batches.

        The store must have reached `last` and must have `progress_reliable`. A previous value that has been compacted
        is None.

        Raises:
            Compacted: `first` is older than the history.
        """
        ...

    @property
    def progress_reliable(self) -> bool:
        """Whether progress notifications can be trusted; False for etcd before 3.4.25 / 3.5.8.

        If it is False, consistent reads must go to the store instead of the cache.
        """
        ...

    async def grant_lease(self, ttl: int) -> int:
        """Create a lease of `ttl` seconds and return its ID. Keys written with it are deleted when it expires."""
        ...

    async def compact(self, revision: int) -> None:
        """Discard the history before `revision`, which itself can still be read and watched from.

        Raises:
            Compacted: this or a later revision has been compacted before.
            FutureRevision: `revision` has not been reached.
        """
        ...

    async def size(self) -> int:
        """Return the number of bytes that the store occupies."""
        ...

    async def close(self) -> None: ...


def is_key(text: str) -> bool:
    """Return whether `text` can be a key or a prefix of keys, that is whether it can be encoded as UTF-8.

    Keys are UTF-8, but a request path may contain arbitrary bytes, which Python represents as surrogates.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def prefix_end(prefix: str) -> str:
    """Return the first key after all keys that begin with `prefix`, which must not be empty."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def key_root(prefix: str) -> str:
    """Return the prefix of all keys for a value of --etcd-prefix: with a slash at its beginning and none at its end.

    "registry" and "/registry/" give "/registry", and "/" gives "".
    Upstream: staging/src/k8s.io/apiserver/pkg/storage/etcd3/store.go, New.
    """
    return normpath("/" + prefix.lstrip("/")).rstrip("/")
