"""Heads that clients send again and again: requests of one client differ only in the request line.

A head that the parser has read before need not be parsed again. Its requests share one list of headers, and the results
that filters compute from it (`of_headers`).
Measured: parsing a header takes 2,800 instructions, and looking at each one in five filters as many.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from tetrapod.generic.http.request import HeaderList, Request
from tetrapod.generic.http.request_target import Target, parse_target
from tetrapod.machinery.boundedcache import BoundedCache, bounded

T = TypeVar("T")

LARGEST: Final = 4096
"""The most bytes of the header lines of a head that is kept."""
_REQUEST_LINE: Final = re.compile(rb"(GET|HEAD|DELETE) (/[-A-Za-z0-9/._~%?=&:,+!*@()]*) HTTP/1\.1")
_BEGINNINGS: Final = frozenset({b"G", b"H", b"D"})
"""The beginnings of these methods. Other requests have a body, whose length is in the head."""
_LONGEST_AUDIT_ID: Final = 64
"""The Audit-ID is the last header of the aggregator's requests, and different in each."""
_NOT_KEPT: Final = frozenset(
    {
        b"audit-id",
        b"connection",
        b"content-length",
        b"expect",
        b"http2-settings",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""The headers that determine the framing, and the Audit-ID. Heads with them are not kept."""
_TRIED: Final = 8
_NOT_TRIED: Final = 64
"""After so many unknown heads in a row, so many more are only parsed. To look for a head in vain takes 30,000
instructions, and some clients have a head that is different in each request, or that cannot be kept.
"""
_CREDENTIALS: Final = frozenset({b"authorization", b"cookie", b"proxy-authorization"})


class Head:
    """The headers of all requests whose header lines are the same bytes, apart from the Audit-ID.

    Attributes:
        headers: the headers, a list that these requests share. It is never changed.
        derived: results of functions, with the list of headers that they were called with.
    """

    __slots__ = ("derived", "headers")

    def __init__(self, headers: HeaderList) -> None:
        self.headers = headers
        self.derived: dict[Any, tuple[Any, ...]] = {}


_heads: Final[BoundedCache[bytes, Head]] = BoundedCache(
    count=512, size=4 << 20, largest=64 << 10, weigh_entry=lambda lines, _: 3000 + 12 * len(lines)
)
"""Heads without credentials by their header lines, for all connections: those of a front proxy carry many users."""


class KnownHeads:
    """The heads that a connection knows: all without credentials, and its own last one with a credential."""

    __slots__ = ("_head", "_lines", "_misses")

    def __init__(self) -> None:
        self._lines = b""
        self._head: Head | None = None
        self._misses = 0  # in a row

    def find(self, data: bytes) -> tuple[str, Target, str, Head] | None:
        """Return the method, the target, the Audit-ID ("" for none) and the head of a request, or None if unknown.

        Args:
            data: received bytes, at whose beginning a request must begin. The result is None unless they are one whole
                request without a body.
        """
        if self._misses >= _TRIED:
            self._misses += 1
            if self._misses < _TRIED + _NOT_TRIED:
                return None
            self._misses = _TRIED - 2  # a new head is kept once, and found at the second try
        if data[:1] not in _BEGINNINGS or data[-4:] != b"\r\n\r\n":
            return None
        lines, audit_id = _split(data)
        head = self._head if lines == self._lines else _heads.recall(lines)
        if head is None:
            return None
        self._misses = 0
        request_line = _request_line(data[: data.find(b"\r\n")])
        return None if request_line is None else (*request_line, audit_id, head)

    def keep(self, data: bytes, request: Request) -> None:
        """Keep the head of a request that the parser has just read, if it may be recognized by its bytes.

        Args:
            data: the received bytes. They began with the request, and the parser has read all of them.
            request: the request. It has no body, and its connection stays open.
        """
        if self._misses >= _TRIED or data[:1] not in _BEGINNINGS or data[-4:] != b"\r\n\r\n":
            return
        self._misses += 1
        lines, audit_id = _split(data)
        headers = request.headers[:-1] if audit_id else request.headers
        names = [name for name, value in headers if name != b"connection" or value.lower() != b"keep-alive"]
        ends = len(request.headers) + 2  # of lines: the request line, each header, and the empty line
        if (
            len(lines) > LARGEST
            or not _NOT_KEPT.isdisjoint(names)
            or not data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r") == ends
            or _request_line(data[: data.find(b"\r\n")]) is None
        ):
            return
        head = Head(headers)
        if _CREDENTIALS.isdisjoint(names):
            _heads.keep(lines, head)
        else:
            self._lines, self._head = lines, head


def of_headers(request: Request, function: Callable[[HeaderList], T]) -> T:
    """Return `function` of the request's headers, which is called once for all requests with the same head.

    Args:
        request: the request.
        function: a function whose result depends on its argument only, and is not changed by its users.
    """
    head = request.head
    if head is None:
        return function(request.headers)
    known = head.derived.get(function)
    if known is None or known[0] is not request.headers:  # a filter has replaced them for this request
        known = head.derived[function] = (request.headers, function(request.headers))
    result: T = known[1]
    return result


def _split(data: bytes) -> tuple[bytes, str]:
    """Return the header lines of a request before a last one with the Audit-ID, and the Audit-ID.

    Without such a line, the result is all header lines and "".

    Args:
        data: the request line and the header lines, with two CRLF at the end.
    """
    begin = data.find(b"\r\n") + 2
    last = data.rfind(b"\r\n", 0, -4)
    if data[last + 2 : last + 12] == b"audit-id: ":
        audit_id = data[last + 12 : -4]
        if len(audit_id) <= _LONGEST_AUDIT_ID and audit_id.replace(b"-", b"").isalnum():
            return data[begin:last], audit_id.decode("ascii")
    return data[begin:-4], ""


@bounded(count=4096, size=4 << 20, largest=4096, weigh_entry=lambda line, _: 5 * len(line) + 600)
def _request_line(line: bytes) -> tuple[str, Target] | None:
    """Return the method and the target of a request line, or None if the parser must read it."""
    match = _REQUEST_LINE.fullmatch(line)
    target = parse_target(match[2]) if match is not None else None
    return None if match is None or target is None else (match[1].decode("ascii"), target)
