"""A watch whose events are converted to the version of the request and then selected.

The inner watch delivers every event, without a selector. Whether an object matches a selector depends on the requested
version, so with a selector the previous state of an object must be converted too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from tetrapod.generic.registry.entry import Unstored
from tetrapod.generic.storage.entry import Entry, Predicate
from tetrapod.generic.storage.watch import Sink, Watch, WatchEvent
from tetrapod.generic.storage.wrappers import ForwardingWatch
from tetrapod.machinery.status import StatusError, internal_error

log = logging.getLogger(__name__)

Read = Callable[[Sequence[Entry]], Awaitable[list[Entry]]]


class ConvertedWatch(ForwardingWatch):
    """A `Watch` that converts and selects the events of another one.

    An event that cannot be converted ends the watch with an ERROR event.

    Args:
        read: returns the entries with which it is called, converted to the version of the requests and in the same
            order. It raises StatusError if one cannot be converted.
        predicate: the selectors of the client, which are applied to the converted entries.
        inner: the watch of the objects as they are stored. It is closed together with this one.
    """

    def __init__(self, inner: Watch, read: Read, predicate: Predicate) -> None:
        super().__init__(inner)
        self._read = read
        self._predicate = predicate
        self._pump: asyncio.Task[None] | None = None

    async def _converted(self, batch: Sequence[WatchEvent]) -> list[WatchEvent]:
        entries = [event.entry for event in batch if event.entry is not None]
        if not self._predicate.empty:
            entries += [event.previous for event in batch if event.previous is not None]
        try:
            converted = await self._read(entries)
        except StatusError as error:
            status = internal_error(f"unable to transform watch event: {error.message}").to_status()
            return [WatchEvent("ERROR", None, batch[0].revision, status=status)]
        converted_by_id = {id(entry): selected for entry, selected in zip(entries, converted, strict=True)}
        return [selected for event in batch if (selected := self._selected(event, converted_by_id)) is not None]

    def _selected(self, event: WatchEvent, converted: dict[int, Entry]) -> WatchEvent | None:
        """Return the event to send to the client, or None if the client's selector excludes the object.

        If the object no longer matches the selector, the event becomes DELETED; if it starts to match, ADDED.

        Args:
            event: an event of the inner watch, before conversion.
            converted: the converted entries, by `id()` of the entries before conversion.
        """
        if event.entry is None:
            return event
        entry = converted[id(event.entry)]
        if self._predicate.empty:
            return event.showing(entry)
        matches = self._predicate.matches(entry)
        if event.type == "DELETED":
            return event.showing(entry) if matches else None
        previous = None if event.previous is None else converted[id(event.previous)]
        matched = previous is not None and self._predicate.matches(previous)
        if matches:
            return WatchEvent("MODIFIED" if matched else "ADDED", entry, event.revision)
        return (
            WatchEvent("DELETED", _deleted(previous, event.revision), event.revision)
            if matched and previous is not None
            else None
        )

    async def _through(self, batches: AsyncIterator[list[WatchEvent]]) -> AsyncIterator[list[WatchEvent]]:
        async for batch in batches:
            if converted := await self._converted(batch):
                yield converted
            if len(converted) == 1 and converted[0].type == "ERROR":
                self._inner.close()
                return

    def __aiter__(self) -> AsyncIterator[list[WatchEvent]]:
        return self._through(aiter(self._inner))

    def initial(self) -> AsyncIterator[list[WatchEvent]]:
        return self._through(self._inner.initial())

    def subscribe(self, sink: Sink) -> None:
        """Start a task that calls the sink with converted events, in order.

        The inner watch cannot call the sink itself, because conversion is asynchronous. While earlier events are being
        converted, it queues later ones, and ends if they become too many. Implements `Watch.subscribe`: if the sink
        raises an exception, the inner watch is closed. `close` cancels the task.

        Args:
            sink: called with each non-empty batch of converted events.
        """

        async def pump() -> None:
            try:
                async for batch in self:
                    sink(batch)
            except Exception:
                log.exception("a watch of custom resources was ended: its events could not be converted or sent")
            finally:
                self._inner.close()

        self._pump = asyncio.create_task(pump())

    def close(self) -> None:
        super().close()
        if self._pump is not None:
            self._pump.cancel()


def _deleted(entry: Entry, revision: int) -> Entry:
    """Return the object of a DELETED event for an object that no longer matches the selector.

    Args:
        entry: the last state of the object that matched; it is copied.
        revision: the revision at which the object ceased to match, which becomes its resourceVersion.
    """
    obj = entry.object()
    obj["metadata"]["resourceVersion"] = str(revision)
    return Unstored(entry.key, obj, revision)
