"""Long lists in pieces: items joined some at a time, so that the loop is free in between and nothing is copied twice.

Each item brings the comma before it; whoever writes the first one cuts that off. Pieces of about 100 kB stay in the processor's
cache on their way through TLS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from tetrapod.generic.request import StreamWriter
from tetrapod.generic.storage.interface import Entry
from tetrapod.machinery.status import StatusError

STREAM_FROM: Final = 128 * 1024
"""A list of at least this size is written in pieces; the compression filter compresses from the same size on."""
PIECE_ITEMS: Final = 40


def large(entries: Sequence[Entry]) -> bool:
    """Whether a list of these is to be written in pieces."""
    size = 0
    for entry in entries:
        size += len(entry.item)
        if size >= STREAM_FROM:
            return True
    return False


def in_turn(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """The first alone, for it goes out with the head of the list; then as many at a time as make a piece."""
    yield entries[:1]
    for start in range(1, len(entries), PIECE_ITEMS):
        yield entries[start : start + PIECE_ITEMS]


def joined(entries: Iterable[Entry], to_bytes: Callable[[Entry], bytes]) -> bytes:
    return b",".join([b"", *map(to_bytes, entries)])


def pieces_of(entries: Sequence[Entry], to_bytes: Callable[[Entry], bytes]) -> Iterator[bytes]:
    for some in in_turn(entries):
        yield joined(some, to_bytes)


async def gathered(pieces: Iterator[bytes]) -> bytes:
    """All of them, without the first comma."""
    kept = []
    for piece in pieces:
        kept.append(piece)
        await asyncio.sleep(0)
    return b"".join(kept)[1:]


class ListStream:
    """Writes a long list: the loop is free between two pieces, and a slow client is waited for."""

    def __init__(self, head: bytes, pieces: Iterator[bytes], tail: bytes, *, comma: bool = True) -> None:
        self._head, self._pieces, self._tail, self._comma = head, pieces, tail, comma

    async def run(self, writer: StreamWriter) -> None:
        try:
            writer.write(self._head + next(self._pieces)[self._comma :])
            for piece in self._pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        except StatusError:  # the status line is out: all that is left is to cut the answer short
            raise ConnectionAbortedError("the list could not be finished") from None
        writer.write(self._tail)
