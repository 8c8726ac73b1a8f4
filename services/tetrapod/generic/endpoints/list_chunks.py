"""Long lists in pieces: a few items are joined at a time.

The event loop thus runs in between, and nothing is copied twice. Each item includes the comma before it, and the writer
of the first item removes that comma. Pieces of about 100 kB stay in the CPU cache on their way through TLS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from tetrapod.generic.http.request import StreamWriter
from tetrapod.generic.storage.interface import Entry
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
        size += len(entry.item)
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


def split_large(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Yield the entries together, or each alone if they exceed `LARGE_PIECE` (1 MiB) together."""
    if sum(len(entry.item) for entry in entries) <= LARGE_PIECE:
        yield entries
    else:
        for i in range(len(entries)):
            yield entries[i : i + 1]


def join_items(items: list[bytes], separator: bytes) -> Iterator[bytes]:
    """Yield encoded items as one piece, or each as a piece if they exceed `LARGE_PIECE` (1 MiB) together.

    Args:
        separator: precedes each item, also the first.
    """
    if sum(map(len, items)) <= LARGE_PIECE:
        yield separator.join([b"", *items])
    else:
        for item in items:
            yield separator + item


def joined(entries: Iterable[Entry], to_bytes: Callable[[Entry], bytes]) -> bytes:
    """Return objects as the encoded items of a list, each preceded by a comma.

    Args:
        entries: the stored objects.
        to_bytes: returns the encoded item for an entry.
    """
    return b",".join([b"", *map(to_bytes, entries)])


def pieces_of(entries: Sequence[Entry], to_bytes: Callable[[Entry], bytes]) -> Iterator[bytes]:
    """Yield pieces of the encoded items of a list, each item preceded by a comma.

    Args:
        entries: the stored objects.
        to_bytes: returns the encoded item for an entry.
    """
    for chunk in slice_entries(entries):
        for part in split_large(chunk):
            yield joined(part, to_bytes)


async def join_pieces(pieces: Iterator[bytes]) -> bytes:
    """Return all pieces joined, without the first comma, yielding to the event loop between them."""
    chunks = []
    for piece in pieces:
        chunks.append(piece)
        await asyncio.sleep(0)
    return b"".join(chunks)[1:]


class ListStream:
    """The body of a long list, which is written in pieces.

    Args:
        head: the bytes before the items.
        pieces: the items; at least one.
        tail: the bytes after the items.
        comma: whether the first item is preceded by a comma, which must be removed.
    """

    def __init__(self, head: bytes, pieces: Iterator[bytes], tail: bytes, *, comma: bool = True) -> None:
        self._head, self._pieces, self._tail, self._comma = head, pieces, tail, comma

    async def run(self, writer: StreamWriter) -> None:
        """Write the list, yielding to the event loop between pieces and waiting for a slow client.

        Raises:
            ConnectionAbortedError: an item cannot be encoded; the response is truncated, because its status has been
                sent.
        """
        try:
            writer.write(self._head + next(self._pieces)[self._comma :])
            for piece in self._pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        except StatusError:  # the status line has been sent, so the response can only be truncated
            raise ConnectionAbortedError("the list could not be finished") from None
        writer.write(self._tail)
