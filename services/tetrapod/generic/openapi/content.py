"""A document as an answer: ETag, If-None-Match, If-Modified-Since, Range, gzip.

Upstream serves OpenAPI through Go's http.ServeContent, whose rules these are.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final

from tetrapod.generic.openapi.pieces import sendable
from tetrapod.generic.request import HeaderList, Request, Response, StreamResponse, StreamWriter

_RANGE: Final = re.compile(r"bytes=\s*([0-9]*)\s*-\s*([0-9]*)\s*")
_COMPRESSED_FROM: Final = 128 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """`pieces` are the body, written a few at a time where there are several. `etag` with its quotes, or "" for none; `modified` is
    compared with If-Modified-Since."""

    pieces: Sequence[bytes]
    media_type: str
    modified: datetime
    etag: str = ""
    cache_control: str = ""

    def unchanged(self, request: Request) -> Response | None:
        """The answer to a client that has it already, for which it need not be made."""
        return Response(304, self._validators()) if self._unchanged(request) else None

    def answer(self, request: Request) -> Response:
        headers = self._validators()
        if self._unchanged(request):
            return Response(304, headers)
        headers.append((b"content-type", self.media_type.encode()))
        asked = request.header(b"range")
        if asked and (answer := self._part(asked, headers)) is not None:
            return answer
        headers.append((b"accept-ranges", b"bytes"))
        gzip = self._size >= _COMPRESSED_FROM and "gzip" in _codings(request)
        if gzip:
            headers.append((b"content-encoding", b"gzip"))
        elif len(self.pieces) == 1:
            return Response(200, headers, self.pieces[0])
        else:
            headers.append((b"content-length", str(self._size).encode()))
        return StreamResponse(200, headers, self._gzipped if gzip else self._write)

    def _validators(self) -> HeaderList:
        headers: HeaderList = [(b"last-modified", format_datetime(self.modified.astimezone(UTC), usegmt=True).encode())]
        if self.etag:
            headers.append((b"etag", self.etag.encode()))
        if self.cache_control:
            headers.append((b"cache-control", self.cache_control.encode()))
        headers.append((b"vary", b"Accept-Encoding"))
        return headers

    @property
    def _size(self) -> int:
        return sum(map(len, self.pieces))

    async def _write(self, writer: StreamWriter) -> None:
        for piece in sendable(self.pieces):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    async def _gzipped(self, writer: StreamWriter) -> None:
        compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
        for piece in sendable(self.pieces):
            writer.write(compressor.compress(piece))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(compressor.flush())

    def _unchanged(self, request: Request) -> bool:
        if_none_match = request.header(b"if-none-match")
        if if_none_match:
            return self._matches(if_none_match)
        since = request.header(b"if-modified-since")
        if not since or request.method not in ("GET", "HEAD"):
            return False
        try:
            return self.modified.replace(microsecond=0) <= parsedate_to_datetime(since)
        except (ValueError, TypeError):
            return False

    def _matches(self, header: str) -> bool:
        tags = [tag.strip() for tag in header.split(",")]
        return "*" in tags or (bool(self.etag) and any(tag.removeprefix("W/") == self.etag for tag in tags))

    def _part(self, asked: str, headers: HeaderList) -> Response | None:
        """One range; several, or a malformed header, are answered in full or refused."""
        match = _RANGE.fullmatch(asked)
        if match is None or not (match[1] or match[2]):
            return None if "," in asked else _unsatisfiable("invalid range", None)
        size = self._size
        if match[1]:
            start = int(match[1])
            end = min(int(match[2]), size - 1) if match[2] else size - 1
        else:
            start, end = max(size - int(match[2]), 0), size - 1
        if start >= size:
            return _unsatisfiable("invalid range: failed to overlap", size)
        if start > end:
            return _unsatisfiable("invalid range", None)
        headers.append((b"accept-ranges", b"bytes"))
        headers.append((b"content-range", f"bytes {start}-{end}/{size}".encode()))
        return Response(206, headers, self._between(start, end + 1))

    def _between(self, start: int, end: int) -> bytes:
        found: list[bytes] = []
        position = 0
        for piece in self.pieces:
            if position < end and position + len(piece) > start:
                found.append(piece[max(start - position, 0) : end - position])
            position += len(piece)
        return b"".join(found)


def _codings(request: Request) -> set[str]:
    return {part.partition(";")[0].strip() for part in request.header(b"accept-encoding").split(",")}


def _unsatisfiable(text: str, size: int | None) -> Response:
    headers: HeaderList = [(b"content-type", b"text/plain; charset=utf-8"), (b"x-content-type-options", b"nosniff")]
    if size is not None:
        headers.append((b"content-range", f"bytes */{size}".encode()))
    return Response(416, headers, f"{text}\n".encode())
