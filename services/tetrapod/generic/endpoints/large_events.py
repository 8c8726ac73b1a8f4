"""Events of large objects, which watches encode and write in parts, so that many watches do not stall the event loop.

An event of a megabyte takes a millisecond to encrypt for each watch. A thousand watches at once would hold up all
other requests for a second, and buffer a gigabyte.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from tetrapod.generic.storage.interface import WatchEvent

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


class _Turns:
    """The turns of one event loop, which lets one of the waiting tasks run in each step.

    Args:
        loop: the event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    def add(self) -> asyncio.Future[None]:
        """Return a future that is done when it is the turn of the caller."""
        turn = self._loop.create_future()
        self._waiting.append(turn)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._grant)
        return turn

    def _grant(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # else its task was cancelled
                turn.set_result(None)
                break
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            self._loop.call_soon(self._grant)


_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns]] = WeakKeyDictionary()


async def turn() -> None:
    """Wait until this task may encode or write a part. In each step of the event loop, one task gets its turn."""
    loop = asyncio.get_running_loop()
    turns = _turns.get(loop)
    if turns is None:
        turns = _turns[loop] = _Turns(loop)
    await turns.add()
