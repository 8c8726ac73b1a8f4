"""Events of large objects, which watches encode and write in parts, so that many watches do not stall the event loop.

An event of a megabyte takes a millisecond to encrypt for each watch. A thousand watches at once would hold up all
other requests for a second, and buffer a gigabyte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from tetrapod.generic.scheduling.step_queue import StepQueue
from tetrapod.generic.storage.watch import WatchEvent

PIECE: Final = 128 << 10
"""Bytes of events, or of a larger event, that a watch writes in one step of the event loop."""


def are_large(events: Sequence[WatchEvent]) -> bool:
    """Return whether the objects of these events have more than `PIECE` bytes together."""
    size = 0
    for event in events:
        if event.entry is not None:
            size += event.entry.size
    return size > PIECE


def in_parts(events: Sequence[WatchEvent], most: int) -> Iterator[Sequence[WatchEvent]]:
    """Divide events into parts of at most `most` events and `PIECE` bytes. A larger event is a part of its own."""
    start = size = 0
    for end, event in enumerate(events):
        added = 0 if event.entry is None else event.entry.size
        if end > start and (end - start == most or size + added > PIECE):
            yield events[start:end]
            start, size = end, 0
        size += added
    if start < len(events):
        yield events[start:]


_queues: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, StepQueue]] = WeakKeyDictionary()


async def turn() -> None:
    """Wait until this task may encode or write a part. In each step of the event loop, one task gets its turn."""
    loop = asyncio.get_running_loop()
    queue = _queues.get(loop)
    if queue is None:
        queue = _queues[loop] = StepQueue()
    granted: asyncio.Future[None] = loop.create_future()
    queue.add(loop, partial(_grant, granted))
    await granted


def _grant(granted: asyncio.Future[None]) -> None:
    if not granted.done():  # else its task was cancelled
        granted.set_result(None)
