"""`Backend`: the interface of a revisioned key-value store, with etcd's semantics. Two implement it: `etcd/`, `sqlite/`.

One contract suite (tests/integration/storage/) runs over both. Keys are full paths (`/registry/pods/ns/a`).
A range is [start, end). Every write gets the next revision; deleting too. The cacher is the only caller on hot paths.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol


class KeyValue(NamedTuple):
    """`lease` is 0 where the key does not expire."""

    key: str
    value: bytes
    mod_revision: int
    create_revision: int
    lease: int = 0


class StaleKeyValue(KeyValue):
    """A value that is right, but is to be written anew at the next write, though that changes nothing (encryption)."""


class Range(NamedTuple):
    """The keys of a range up to the limit, in order; `more` where the limit cut it."""

    kvs: Sequence[KeyValue]
    more: bool
    total: int  # keys of the range, whatever the limit
    revision: int  # of the store when it was read


class WriteResult(NamedTuple):
    """`current` is what is stored now where the comparison failed (None: the key is absent)."""

    succeeded: bool
    revision: int
    current: KeyValue | None


class BackendEvent(NamedTuple):
    """`value` is None for a deletion. `previous` is the value before, where there was one."""

    key: str
    value: bytes | None
    revision: int
    previous: KeyValue | None
    created: bool
    lease: int = 0


class WatchBatch(NamedTuple):
    """Events of whole revisions, in order. A batch without events is progress: all up to `revision` has been seen."""

    events: Sequence[BackendEvent]
    revision: int


class Compacted(Exception):
    """The revision asked for is gone. `revision` is the compacted one."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"required revision has been compacted: {revision}")
        self.revision = revision


class FutureRevision(Exception):
    """The revision asked for has not been reached."""


class CannotOpen(Exception):
    """What is to be the store cannot be; the text says why."""


class RequestTooLarge(Exception):
    """The value is larger than the store takes (etcd: 1.5 MiB)."""

    def __init__(self) -> None:
        super().__init__("etcdserver: request is too large")


class LeaseNotFound(Exception):
    """The lease has ended already."""

    def __init__(self) -> None:
        super().__init__("etcdserver: requested lease not found")


class BackendWatch(Protocol):
    """An open watch: iterate for batches. Raises Compacted or Unavailable when it ends."""

    def __aiter__(self) -> AsyncIterator[WatchBatch]: ...

    async def __anext__(self) -> WatchBatch: ...

    def at_hand(self) -> WatchBatch | None:
        """What `__anext__` would return without waiting, taken from it; None where it would wait, or end."""
        ...

    @property
    def progress(self) -> int:
        """All events up to this revision have been handed out. Costs nothing to ask."""
        ...


class Backend(Protocol):
    """Raises Unavailable from every method when the store does not answer in time."""

    async def get(self, key: str) -> KeyValue | None:
        """A linearizable read."""
        ...

    async def range(
        self, start: str, end: str, *, limit: int = 0, revision: int = 0, keys_only: bool = False, count_only: bool = False
    ) -> Range:
        """Sorted by key; revision 0 is now (linearizable). Raises Compacted, FutureRevision."""
        ...

    async def put_if(self, key: str, value: bytes, expected: int, *, lease: int = 0) -> WriteResult:
        """Write if the key's mod revision is `expected` (0: the key is absent). Raises RequestTooLarge, LeaseNotFound."""
        ...

    async def delete_if(self, key: str, expected: int) -> WriteResult: ...

    async def revision(self) -> int:
        """The current revision, linearizable: no write that was acknowledged before this call is above it."""
        ...

    def watch(self, start: str, end: str, from_revision: int, *, previous: bool = True) -> AbstractAsyncContextManager[BackendWatch]:
        """Events from `from_revision` on, inclusive (0: from now on). Without `previous`, events lack the value before."""
        ...

    async def request_progress(self) -> None:
        """Ask that every open watch soon yields a batch with its progress."""
        ...

    @property
    def progress_reliable(self) -> bool:
        """False where progress notifications cannot be trusted (etcd before 3.4.25 / 3.5.8): read from the store then."""
        ...

    async def grant_lease(self, ttl: int) -> int:
        """A lease of `ttl` seconds; keys written with it vanish when it ends."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget what was before `revision`: it can still be read, and watched from. Raises Compacted, FutureRevision."""
        ...

    async def size(self) -> int:
        """Bytes that the store occupies."""
        ...

    async def close(self) -> None: ...
