"""gzip for large responses to clients that accept it.

As upstream, only responses of more than 128 KiB are compressed, only if an element of Accept-Encoding is exactly
`gzip`, and at level 1. Watches compress their events themselves.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.http.gzip_encoding import HEADERS, accepts_gzip, compressor, member_of
from tetrapod.generic.http.request import (
    ForwardingWriter,
    Handler,
    Request,
    Response,
    StreamResponse,
    StreamWriter,
    UpgradeResponse,
)

THRESHOLD: Final = 128 * 1024
_LISTS: Final = ("list", "deletecollection")
"""The verbs whose streamed responses are lists."""


def with_compression(handler: Handler) -> Handler:
    """Return a handler that compresses large response bodies and streamed lists, if the client accepts gzip.

    A body of more than `THRESHOLD` bytes is large. Watches, upgrades and responses with a Content-Encoding are left as
    they are. Nothing is compressed if the feature gate APIResponseCompression is disabled.
    """

    async def compression(request: Request) -> Response:
        response = await handler(request)
        if type(response) is Response and len(response.body) <= THRESHOLD:
            return response
        if not feature_gates.enabled("APIResponseCompression"):
            return response
        if isinstance(response, UpgradeResponse) or any(name == b"content-encoding" for name, _ in response.headers):
            return response  # a service behind this one has compressed it
        if isinstance(response, StreamResponse):
            if request.info is None or request.info.verb not in _LISTS or not accepts_gzip(request):
                return response
            return _compress_stream(response)
        if not accepts_gzip(request):
            return response
        response.body = await member_of(response.body)
        response.headers.extend(HEADERS)
        return response

    return compression


def _compress_stream(response: StreamResponse) -> StreamResponse:
    """Return a response that compresses the stream of `response`.

    Only large lists are streamed, so no size is checked.
    """
    inner = response.run

    async def run(writer: StreamWriter) -> None:
        gzip = _GzipWriter(writer)
        await inner(gzip)
        gzip.finish()

    headers = [h for h in response.headers if h[0] != b"content-length"]
    compressed = StreamResponse(response.status, [*headers, *HEADERS], run)
    compressed.trailers = response.trailers
    return compressed


class _GzipWriter(ForwardingWriter):
    """A StreamWriter that compresses what is written and passes it on to another one."""

    def __init__(self, writer: StreamWriter) -> None:
        super().__init__(writer)
        self._compressor = compressor()

    def write(self, data: bytes) -> None:
        if out := self._compressor.compress(data):
            self._writer.write(out)

    def finish(self) -> None:
        """Write the end of the gzip stream. It must be called once, after the last `write`."""
        self._writer.write(self._compressor.flush())
