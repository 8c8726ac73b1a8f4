"""The head of a response as bytes. Header names go out in the canonical case that Go writes."""

from __future__ import annotations

import http
from functools import lru_cache
from typing import Final

from tetrapod.generic.request import HeaderList


def _status_line(code: int) -> bytes:
    try:
        phrase = http.HTTPStatus(code).phrase
    except ValueError:
        phrase = f"status code {code}"
    return f"HTTP/1.1 {code} {phrase}\r\n".encode()


STATUS_LINES: Final = {code: _status_line(code) for code in range(100, 600)}


@lru_cache(maxsize=1024)
def canonical(name: bytes) -> bytes:
    """`content-type` → `Content-Type: `, ready to be written."""
    special = _SPECIAL.get(name)
    return special or b"-".join(part.capitalize() for part in name.split(b"-")) + b": "


_SPECIAL: Final = {b"audit-id": b"Audit-Id: ", b"etag": b"Etag: ", b"www-authenticate": b"Www-Authenticate: "}


def render(status: int, date: bytes, headers: HeaderList, extra: bytes) -> bytes:
    """Status line, Date, `headers`, then `extra` (whole lines) and the empty line."""
    lines = [canonical(name) + value for name, value in headers]
    lines.append(extra + b"\r\n")
    return (STATUS_LINES.get(status) or _status_line(status)) + date + b"\r\n".join(lines)


def render_trailers(trailers: HeaderList) -> bytes:
    """The last chunk, and what follows it."""
    if not trailers:
        return b"0\r\n\r\n"
    return b"0\r\n%b\r\n" % b"".join(b"%b%b\r\n" % (canonical(name), value) for name, value in trailers)
