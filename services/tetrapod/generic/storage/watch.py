"""`Watch`: an open watch, and the events that it delivers.

Upstream: staging/src/k8s.io/apimachinery/pkg/watch/watch.go
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.gvk import Object


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
