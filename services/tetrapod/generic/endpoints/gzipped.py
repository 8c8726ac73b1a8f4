"""gzip of answers: who takes it, and bytes that can be unpacked for themselves.

Upstream: endpoints/handlers/responsewriters/writers.go (ContentEncodingSupported, level 1).
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

from tetrapod.generic.request import HeaderList, Request

HEADERS: Final[HeaderList] = [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
_OFFLOAD: Final = 256 * 1024
"""Bytes beyond which a thread compresses, so that the loop goes on."""


def accepts_gzip(request: Request) -> bool:
    return any(any(part.strip() == "gzip" for part in value.split(",")) for value in request.header_values(b"accept-encoding"))


def member(data: bytes) -> bytes:
    """A whole member; members one after another are one stream."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    return compressor.compress(data) + compressor.flush()


async def member_of(data: bytes) -> bytes:
    return await asyncio.to_thread(member, data) if len(data) > _OFFLOAD else member(data)
