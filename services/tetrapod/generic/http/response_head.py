"""Encoding of response heads and trailers. Header names are written in Go's canonical case."""

from __future__ import annotations

import http
from typing import Final

from tetrapod.generic.http.request import HeaderList
from tetrapod.machinery.boundedcache import bounded


def _status_line(code: int) -> bytes:
    try:
        phrase = http.HTTPStatus(code).phrase
    except ValueError:
        phrase = f"status code {code}"
    return f"HTTP/1.1 {code} {phrase}\r\n".encode()


STATUS_LINES: Final = {code: _status_line(code) for code in range(100, 600)}


@bounded(count=2048, size=512 << 10, largest=512)
def canonical(name: bytes) -> bytes:
    """Return a lower-case header name in canonical case, with colon and space: `content-type` → `Content-Type: `."""
    special = _SPECIAL.get(name)
    return special or b"-".join(part.capitalize() for part in name.split(b"-")) + b": "


_SPECIAL: Final = {b"audit-id": b"Audit-Id: ", b"etag": b"Etag: ", b"www-authenticate": b"Www-Authenticate: "}


def render(status: int, date: bytes, headers: HeaderList, extra: bytes) -> bytes:
    """Return a response head: the status line, Date, `headers`, `extra` and the empty line.

    Args:
        status: the status code.
        date: the Date header line.
        headers: the headers in their order.
        extra: further complete header lines.
    """
    lines = [canonical(name) + value for name, value in headers]
    lines.append(extra + b"\r\n")
    return (STATUS_LINES.get(status) or _status_line(status)) + date + b"\r\n".join(lines)


def render_trailers(trailers: HeaderList) -> bytes:
    """Return the end of a chunked body: the last chunk and the trailers."""
    if not trailers:
        return b"0\r\n\r\n"
    return b"0\r\n%b\r\n" % b"".join(b"%b%b\r\n" % (canonical(name), value) for name, value in trailers)
