"""HTTP responses with a document: validators, byte ranges and gzip.

Upstream serves OpenAPI through Go's http.ServeContent, whose rules this module and `preconditions.py` follow.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final

from tetrapod.generic.http.gzip_encoding import compressor
from tetrapod.generic.http.headers import NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.request import HeaderList, Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.openapi.document_chunks import join_to_chunks
from tetrapod.generic.openapi.preconditions import NO_OVERLAP, BadRange, Outcome, outcome, range_of, ranges

BY_CODING: Final = (b"vary", b"Accept-Encoding")


@dataclass(frozen=True, slots=True)
class Content:
    """A document that can be sent as a response.

    Attributes:
        pieces: the body, in pieces that are written one after the other.
        media_type: the Content-Type.
        modified: the Last-Modified, with which conditional requests are compared.
        etag: the entity tag with its quotes; "" for none.
        further: additional headers, for caches.
        compressed: whether to use gzip if the client accepts it.
    """

    pieces: Sequence[bytes]
    media_type: str
    modified: datetime
    etag: str = ""
    further: Sequence[tuple[bytes, bytes]] = ()
    compressed: bool = False

    def without_body(self, request: Request) -> Response | None:
        """Return a response without body (304 or 412) if the conditional headers require one, otherwise None."""
        match outcome(request, self.etag, self.modified):
            case Outcome.UNCHANGED:
                headers = self._validators()
                return Response(
                    304, [header for header in headers if header[0] != b"last-modified"] if self.etag else headers
                )
            case Outcome.FAILED:
                declared: HeaderList = [(b"content-type", self.media_type.encode())] if self.etag else []
                return Response(412, self._validators() + declared)
            case Outcome.SEND:
                return None

    def answer(self, request: Request) -> Response:
        """Return the response to a request: 200, or as its headers require 206, 304, 412 or 416."""
        if (conditional := self.without_body(request)) is not None:
            return conditional
        headers = self._validators()
        if (range_header := range_of(request, self.etag, self.modified)) and (
            part := self._part(range_header, headers)
        ) is not None:
            return part
        headers += [(b"content-type", self.media_type.encode()), (b"accept-ranges", b"bytes")]
        gzip = self.compressed and request.method != "HEAD" and _takes_gzip(request)
        if gzip:
            headers.append((b"content-encoding", b"gzip"))
        elif len(self.pieces) == 1:
            return Response(200, headers, self.pieces[0])
        else:
            headers.append((b"content-length", str(self._size).encode()))
        return StreamResponse(200, headers, self._write_gzip if gzip else self._write)

    def _validators(self) -> HeaderList:
        headers: HeaderList = [(b"last-modified", format_datetime(self.modified.astimezone(UTC), usegmt=True).encode())]
        if self.etag:
            headers.append((b"etag", self.etag.encode()))
        return [*headers, *self.further]

    @property
    def _size(self) -> int:
        return sum(map(len, self.pieces))

    async def _write(self, writer: StreamWriter) -> None:
        for piece in join_to_chunks(self.pieces):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    async def _write_gzip(self, writer: StreamWriter) -> None:
        file = compressor()
        for piece in join_to_chunks(self.pieces):
            writer.write(file.compress(piece))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(file.flush())

    def _part(self, range_header: str, headers: HeaderList) -> Response | None:
        """Return a 206 with the requested ranges, or a 416 if they are invalid.

        Return None, so that the whole document is sent, if the header contains no ranges, or ranges that are together
        larger than the document. Headers of the response are appended to `headers`.
        """
        size = self._size
        try:
            byte_ranges = ranges(range_header, size)
        except BadRange as error:
            return _unsatisfiable(str(error), size if str(error) == NO_OVERLAP else None)
        if not byte_ranges or sum(length for _, length in byte_ranges) > size:
            return None
        parts = [
            (_content_range(start, length, size), self._slice(start, start + length)) for start, length in byte_ranges
        ]
        headers.append((b"accept-ranges", b"bytes"))
        if len(parts) == 1:
            headers += [(b"content-type", self.media_type.encode()), (b"content-range", parts[0][0])]
            return Response(206, headers, parts[0][1])
        boundary = secrets.token_hex(30).encode()
        headers.append((b"content-type", b"multipart/byteranges; boundary=" + boundary))
        type_line = b"Content-Type: " + self.media_type.encode()
        body = [
            b"--%b\r\nContent-Range: %b\r\n%b\r\n\r\n%b\r\n" % (boundary, where, type_line, part)
            for where, part in parts
        ]
        return Response(206, headers, b"".join((*body, b"--%b--\r\n" % boundary)))

    def _slice(self, start: int, end: int) -> bytes:
        slices: list[bytes] = []
        position = 0
        for piece in self.pieces:
            if position < end and position + len(piece) > start:
                slices.append(piece[max(start - position, 0) : end - position])
            position += len(piece)
        return b"".join(slices)


def _takes_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip.

    The rules are those of NYTimes' gziphandler, which upstream uses for Swagger only.
    """
    for part in request.header(b"accept-encoding").split(","):
        coding, *parameters = (word.strip().lower() for word in part.split(";"))
        if coding == "gzip":
            return all(parameter.replace(" ", "").strip("0.") != "q=" for parameter in parameters)
    return False


def _content_range(start: int, length: int, size: int) -> bytes:
    return f"bytes {start}-{start + length - 1}/{size}".encode()


def _unsatisfiable(text: str, size: int | None) -> Response:
    headers: HeaderList = [TEXT_TYPE, NOSNIFF]
    if size is not None:
        headers.append((b"content-range", f"bytes */{size}".encode()))
    return Response(416, headers, f"{text}\n".encode())
