"""gzip of responses: negotiation, complete bodies, and streams made of compressed blocks that several streams share.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go, ContentEncodingSupported,
level 1
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Iterable
from typing import Final

from tetrapod.generic.http.request import HeaderList, Request

HEADERS: Final[HeaderList] = [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
_OFFLOAD: Final = 256 * 1024
"""Larger bodies (in bytes) are compressed in a thread, so that the event loop is not blocked."""
_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK: Final = b"\x03\x00"


def accepts_gzip(request: Request) -> bool:
    """Return whether the Accept-Encoding header lists `gzip`.

    As upstream, `gzip` with a quality value does not count.
    """
    return any(
        any(part.strip() == "gzip" for part in value.split(",")) for value in request.header_values(b"accept-encoding")
    )


def member(data: bytes) -> bytes:
    """Return a complete body compressed as a gzip file."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    return compressor.compress(data) + compressor.flush()


async def member_of(data: bytes) -> bytes:
    """Return a complete body compressed as a gzip file. A body of more than 256 KiB is compressed in a thread."""
    return await asyncio.to_thread(member, data) if len(data) > _OFFLOAD else member(data)


def block(data: bytes) -> bytes:
    """Return a part of a stream compressed as deflate blocks, so that several streams can contain the same bytes.

    The part can be decompressed at once and does not refer to earlier data.
    """
    compressor = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


async def block_of(data: bytes) -> bytes:
    """Return a part of a stream compressed as `block` does, but more than 256 KiB in a thread."""
    return await asyncio.to_thread(block, data) if len(data) > _OFFLOAD else block(data)


class BlockStream:
    """One gzip stream, whose content was compressed by `block`.

    All blocks form one gzip member, because Go's reader withholds the last bytes of a member until the next one begins.
    """

    __slots__ = ("_begun", "_checksum", "_size")

    def __init__(self) -> None:
        self._begun = False
        self._checksum = self._size = 0

    def take(self, plain: Iterable[bytes], blocks: bytes) -> bytes:
        """Return the bytes to send for `blocks`: the blocks, preceded by the gzip header in the first call.

        Args:
            plain: the uncompressed data of the blocks, for the checksum.
        """
        for data in plain:
            self._checksum = zlib.crc32(data, self._checksum)
            self._size += len(data)
        if self._begun:
            return blocks
        self._begun = True
        return _HEAD + blocks

    def end(self) -> bytes:
        """Return the last bytes of the stream: end marker, checksum and length."""
        tail = _LAST_BLOCK + struct.pack("<LL", self._checksum, self._size & 0xFFFFFFFF)
        return tail if self._begun else _HEAD + tail
