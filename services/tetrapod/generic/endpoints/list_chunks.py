"""Long lists in pieces: a few items are joined at a time.

The event loop thus runs in between, and nothing is copied twice. Each item includes the comma before it, and the writer
of the first item removes that comma. Pieces of about 100 kB stay in the CPU cache on their way through TLS.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tetrapod.generic.http.request import StreamWriter
from tetrapod.generic.scheduling.offload import LARGE, offloaded
from tetrapod.generic.storage.entry import Entry
from tetrapod.machinery.status import StatusError

STREAM_FROM: Final = 128 * 1024
"""Lists of at least this size are written in pieces. The compression filter uses the same threshold."""
PIECE_ITEMS: Final = 40
LARGE_PIECE: Final = 1 << 20
"""If some items exceed this number of bytes together, each is a piece of its own, because a slow client keeps a piece
in memory.
"""


def large(entries: Sequence[Entry]) -> bool:
    """Return whether the objects of a list have at least 128 KiB together, so that the list is written in pieces."""
    size = 0
    for entry in entries:
        size += entry.size
        if size >= STREAM_FROM:
            return True
    return False


def slice_entries(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Yield the first entry alone, then `PIECE_ITEMS` (40) entries at a time.

    The first entry is alone because it is sent with the head of the list.
    """
    yield entries[:1]
    for start in range(1, len(entries), PIECE_ITEMS):
        yield entries[start : start + PIECE_ITEMS]


def joined(entries: Iterable[Entry], to_bytes: Callable[[Entry], bytes]) -> bytes:
    """Return objects as the encoded items of a list, each preceded by a comma.

    Args:
        entries: the stored objects.
        to_bytes: returns the encoded item for an entry.
    """
    return b",".join([b"", *map(to_bytes, entries)])


@dataclass(frozen=True, slots=True)
class ListBody:
    """The JSON of a list, whose items are encoded when they are needed.

    Attributes:
        head: the bytes before the items.
        entries: the stored objects, in the order of the items.
        encode: returns some of the entries as encoded items, each preceded by a comma.
        tail: the bytes after the items.
        parses: whether `encode` parses the entries. A piece with an entry of at least `LARGE` bytes is then encoded in
            a thread.
        whole: whether the items contain their objects, so that the body is at least as long as these.
    """

    head: bytes
    entries: Sequence[Entry]
    encode: Callable[[Sequence[Entry]], bytes]
    tail: bytes
    parses: bool = True
    whole: bool = True

    def together(self) -> bytes:
        """Return the complete body. Use it for short lists."""
        items = b"".join(self.encode(part) for part, _ in self._parts())
        return b"".join((self.head, items[1:], self.tail))

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the encoded items in pieces, each item preceded by a comma."""
        for part, is_large in self._parts():
            yield await offloaded(True, self.encode, part) if is_large else self.encode(part)

    async def line(self) -> bytes | ListStream:
        """Return the body followed by a newline, or the stream that writes it if it has more than 128 KiB."""
        tail = self.tail + b"\n"
        if not large(self.entries):
            return self.together() + b"\n"
        if self.whole:
            return ListStream(self.head, self.pieces(), tail)
        pieces, begun = self.pieces(), bytearray()
        async for piece in pieces:
            begun += piece
            if len(begun) > STREAM_FROM:
                return ListStream(self.head, _chained(bytes(begun), pieces), tail)
            await asyncio.sleep(0)
        return b"".join((self.head, begun[1:], tail))

    async def joined(self) -> bytes:
        """Return the complete body, yielding to the event loop between the pieces."""
        pieces = []
        async for piece in self.pieces():
            pieces.append(piece)
            await asyncio.sleep(0)
        return b"".join((self.head, b"".join(pieces)[1:], self.tail))

    def _parts(self) -> Iterator[tuple[Sequence[Entry], bool]]:
        """Yield the entries of each piece, and whether they are encoded in a thread."""
        for chunk in slice_entries(self.entries):
            sizes = [entry.size for entry in chunk]  # half the time of map() with attrgetter
            size = sum(sizes)
            if size > LARGE_PIECE:
                for i, entry in enumerate(chunk):
                    yield chunk[i : i + 1], self.parses and entry.size >= LARGE
            else:
                yield chunk, self.parses and size >= LARGE and max(sizes) >= LARGE


async def _chained(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in others:
        yield piece


async def iterated(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces of an ordinary iterable, for `ListStream`."""
    for piece in pieces:
        yield piece


class ListStream:
    """The body of a long list, which is written in pieces.

    Args:
        head: the bytes before the items.
        pieces: the items; at least one.
        tail: the bytes after the items.
        comma: whether the first item is preceded by a comma, which must be removed.
    """

    def __init__(self, head: bytes, pieces: AsyncIterator[bytes], tail: bytes, *, comma: bool = True) -> None:
        self._head, self._pieces, self._tail, self._comma = head, pieces, tail, comma

    async def run(self, writer: StreamWriter) -> None:
        """Write the list, yielding to the event loop between pieces and waiting for a slow client.

        Raises:
            ConnectionAbortedError: an item cannot be encoded; the response is truncated, because its status has been
                sent.
        """
        try:
            writer.write(self._head + (await anext(self._pieces))[self._comma :])
            async for piece in self._pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        except StatusError:  # the status line has been sent, so the response can only be truncated
            raise ConnectionAbortedError("the list could not be finished") from None
        writer.write(self._tail)
