"""gzip for large answers to clients that accept it (upstream: endpoints/handlers/responsewriters/writers.go).

As upstream: only from 128 KiB on, only when an element of Accept-Encoding is exactly `gzip`, never for watches; level 1.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

from tetrapod.generic.request import ForwardingWriter, Handler, Request, Response, StreamResponse, StreamWriter, UpgradeResponse

THRESHOLD: Final = 128 * 1024
_OFFLOAD: Final = 256 * 1024  # beyond this many bytes a thread compresses, so that the loop goes on

_COMPRESSED: Final = ((b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding"))


def with_compression(handler: Handler) -> Handler:
    async def compression(request: Request) -> Response:
        response = await handler(request)
        if isinstance(response, UpgradeResponse) or any(name == b"content-encoding" for name, _ in response.headers):
            return response  # who stands behind has compressed it
        if isinstance(response, StreamResponse):
            if request.info is None or request.info.verb != "list" or not accepts_gzip(request):
                return response
            return _compress_stream(response)
        if len(response.body) < THRESHOLD or not accepts_gzip(request):
            return response
        body = response.body
        response.body = await asyncio.to_thread(_gzip, body) if len(body) > _OFFLOAD else _gzip(body)
        response.headers.extend(_COMPRESSED)
        return response

    return compression


def accepts_gzip(request: Request) -> bool:
    return any(any(part.strip() == "gzip" for part in value.split(",")) for value in request.header_values(b"accept-encoding"))


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    return compressor.compress(body) + compressor.flush()


def _compress_stream(response: StreamResponse) -> StreamResponse:
    """A streamed list: only lists large enough are streamed, so each of them is above the threshold."""
    inner = response.run

    async def run(writer: StreamWriter) -> None:
        gzip = _GzipWriter(writer)
        await inner(gzip)
        gzip.finish()

    headers = [h for h in response.headers if h[0] != b"content-length"]
    compressed = StreamResponse(response.status, [*headers, *_COMPRESSED], run)
    compressed.trailers = response.trailers
    return compressed


class _GzipWriter(ForwardingWriter):
    """A StreamWriter that compresses on its way to another."""

    def __init__(self, writer: StreamWriter) -> None:
        super().__init__(writer)
        self._compressor = zlib.compressobj(1, zlib.DEFLATED, 31)

    def write(self, data: bytes) -> None:
        if out := self._compressor.compress(data):
            self._writer.write(out)

    def finish(self) -> None:
        self._writer.write(self._compressor.flush())
