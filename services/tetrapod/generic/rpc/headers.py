"""HTTP/2 header blocks (RFC 7541).

Requests use literals without indexing, so that the block of a call can be cached. This client announces a dynamic table
of size 0, so equal blocks of responses have equal meaning and are decoded once; there are only as many as methods and
outcomes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tetrapod.generic.http2.frames import COMPRESSION_ERROR, ProtocolError
from tetrapod.generic.http2.header_decoding import HeaderDecoder, OversizedHeaders
from tetrapod.generic.http2.header_encoding import indexed, literal

LARGEST: Final = 256 * 1024
_POST: Final = indexed(3)
_SCHEMES: Final = {"http": indexed(6), "https": indexed(7)}
_ALWAYS: Final = (
    literal(b"content-type", b"application/grpc") + literal(b"user-agent", b"tetrapod") + literal(b"te", b"trailers")
)


@lru_cache(maxsize=256)
def request_block(
    scheme: str, authority: str, path: str, timeout: float | None, metadata: tuple[tuple[str, str], ...]
) -> bytes:
    """Return the encoded headers of a call. They use no dynamic table, so that the block can be cached.

    Args:
        scheme: `http` or `https`.
        authority: the host and port.
        path: the method, such as `/etcdserverpb.KV/Range`.
        timeout: seconds after which the server may cancel the call, sent as grpc-timeout; None for no limit.
        metadata: further headers, with lower-case names.
    """
    fields = [(":path", path), (":authority", authority), *metadata]
    if timeout is not None:
        fields.append(("grpc-timeout", f"{max(1, round(timeout * 1000))}m"))
    return (
        _POST
        + _SCHEMES[scheme]
        + b"".join(literal(name.encode("ascii"), value.encode("ascii")) for name, value in fields)
        + _ALWAYS
    )


class HeaderReader:
    """The decoder of the header blocks of one connection."""

    def __init__(self) -> None:
        self._decoder = HeaderDecoder(LARGEST, table_size=0)
        self._known: dict[bytes, dict[str, str]] = {}

    def read(self, block: bytes) -> dict[str, str]:
        """Return the headers in a block by name, the last one of equal names.

        The dictionary is shared: do not modify it.

        Raises:
            ProtocolError: the block is malformed.
        """
        cached = self._known.get(block)
        if cached is not None:
            return cached
        try:
            headers = {name.decode(): value.decode() for name, value in self._decoder.decode(block)}
        except OversizedHeaders:
            raise ProtocolError(COMPRESSION_ERROR, f"a header list exceeds {LARGEST} bytes") from None
        except UnicodeDecodeError as error:
            raise ProtocolError(COMPRESSION_ERROR, f"a header block cannot be read: {error}") from error
        if len(self._known) < 64:
            self._known[block] = headers
        return headers
