"""gzip of answers: who takes it, whole bodies, and streams made of blocks that many of them share.

Upstream: endpoints/handlers/responsewriters/writers.go (ContentEncodingSupported, level 1).
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Iterable
from typing import Final

from tetrapod.generic.request import HeaderList, Request

HEADERS: Final[HeaderList] = [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
_OFFLOAD: Final = 256 * 1024
"""Bytes beyond which a thread compresses, so that the loop goes on."""
_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK: Final = b"\x03\x00"


def accepts_gzip(request: Request) -> bool:
    return any(any(part.strip() == "gzip" for part in value.split(",")) for value in request.header_values(b"accept-encoding"))


def member(data: bytes) -> bytes:
    """A whole body."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    return compressor.compress(data) + compressor.flush()


async def member_of(data: bytes) -> bytes:
    return await asyncio.to_thread(member, data) if len(data) > _OFFLOAD else member(data)


def block(data: bytes) -> bytes:
    """A part of a stream that can be unpacked as soon as it is there, and refers to nothing before it, so that streams may share it."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


async def block_of(data: bytes) -> bytes:
    return await asyncio.to_thread(block, data) if len(data) > _OFFLOAD else block(data)


class BlockStream:
    """One member of `block`s. It has to be one: Go's reader holds the last bytes of a member back until the next one begins."""

    __slots__ = ("_begun", "_checksum", "_size")

    def __init__(self) -> None:
        self._begun = False
        self._checksum = self._size = 0

    def take(self, plain: Iterable[bytes], blocks: bytes) -> bytes:
        """What to send of `blocks`, which are `plain` compressed."""
        for data in plain:
            self._checksum = zlib.crc32(data, self._checksum)
            self._size += len(data)
        if self._begun:
            return blocks
        self._begun = True
        return _HEAD + blocks

    def end(self) -> bytes:
        tail = _LAST_BLOCK + struct.pack("<LL", self._checksum, self._size & 0xFFFFFFFF)
        return tail if self._begun else _HEAD + tail
