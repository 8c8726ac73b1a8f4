"""Evaluation of the conditional and range headers of a request for a document.

Upstream: Go's http.ServeContent (net/http/fs.go)
"""

from __future__ import annotations

import re
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final

from tetrapod.generic.http.request import Request

INVALID: Final = "invalid range"
NO_OVERLAP: Final = "invalid range: failed to overlap"
_TAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_NUMBER: Final = re.compile(r"\+?[0-9]{1,18}")
_SPACE: Final = " \t\r\n"


class Outcome(Enum):
    """The result of the conditional headers of a request; the value is the status code of the response.

    Attributes:
        SEND: send the document.
        UNCHANGED: the client has the document already.
        FAILED: a condition does not hold, such as If-Match.
    """

    SEND = 200
    UNCHANGED = 304
    FAILED = 412


class BadRange(ValueError):
    """The error of a Range header that is malformed or unsatisfiable. Its text is the body of the 416 response."""


def outcome(request: Request, etag: str, modified: datetime) -> Outcome:
    """Return whether the conditional headers of a request let the document be sent (200), or decide for 304 or 412.

    The headers are If-Match, If-None-Match, If-Modified-Since and If-Unmodified-Since. Range is not considered.

    Args:
        request: the request.
        etag: the entity tag of the document with its quotes; "" if it has none.
        modified: when the document was last modified.
    """
    if not _holds(request, etag, modified):
        return Outcome.FAILED
    is_read = request.method in ("GET", "HEAD")
    if none_match := request.header(b"if-none-match"):
        if not _contains(none_match, etag, weak=True):
            return Outcome.SEND
        return Outcome.UNCHANGED if is_read else Outcome.FAILED
    since = _time(request.header(b"if-modified-since")) if is_read else None
    return Outcome.UNCHANGED if since is not None and _seconds(modified) <= since else Outcome.SEND


def _holds(request: Request, etag: str, modified: datetime) -> bool:
    if match := request.header(b"if-match"):
        return _contains(match, etag, weak=False)
    since = _time(request.header(b"if-unmodified-since"))
    return since is None or _seconds(modified) <= since


def range_of(request: Request, etag: str, modified: datetime) -> str:
    """Return the value of the Range header; "" if it is missing, or if If-Range does not match the document.

    The document has the ETag `etag` and was last changed at `modified`.
    """
    condition = request.header(b"if-range")
    if not condition or request.method not in ("GET", "HEAD"):
        return request.header(b"range")
    if tag := _TAG.match(condition.strip(_SPACE)):
        holds = _same(tag[0], etag, weak=False)
    else:
        holds = _time(condition) == _seconds(modified)
    return request.header(b"range") if holds else ""


def ranges(header: str, size: int) -> list[tuple[int, int]]:
    """Return start and length in bytes of each satisfiable range, in the order of the header.

    Args:
        header: the value of the Range header.
        size: the size of the document in bytes.

    Returns:
        [] if the header lists no ranges.

    Raises:
        BadRange: the header is malformed, or lists ranges of which none is satisfiable.
    """
    if not header.startswith("bytes="):
        raise BadRange(INVALID)
    satisfiable: list[tuple[int, int]] = []
    unsatisfiable = False
    for part in header.removeprefix("bytes=").split(","):
        if not (part := part.strip(_SPACE)):
            continue
        byte_range = _one_range(part, size)
        unsatisfiable = unsatisfiable or byte_range is None
        if byte_range is not None:
            satisfiable.append(byte_range)
    if unsatisfiable and not satisfiable:
        raise BadRange(NO_OVERLAP)
    return satisfiable


def _one_range(part: str, size: int) -> tuple[int, int] | None:
    """Return start and length of a range, or None if it begins after the end of the document.

    `part` is the range as in the header, such as 0-99. `size` is the size of the document in bytes.

    Raises:
        BadRange: the range is malformed.
    """
    first, dash, last = part.partition("-")
    first, last = first.strip(_SPACE), last.strip(_SPACE)
    if not dash or not (first or last):
        raise BadRange(INVALID)
    if not first:
        length = min(_number(last), size)
        return size - length, length
    start = _number(first)
    if start >= size:
        return None
    end = _number(last) if last else size - 1
    if start > end:
        raise BadRange(INVALID)
    return start, min(end, size - 1) - start + 1


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadRange(INVALID)
    return int(text)


def _contains(header: str, etag: str, *, weak: bool) -> bool:
    """Return whether a list of entity tags contains `etag` or `*`. As in Go, the list ends at the first malformed tag.

    With `weak`, a `W/` before a tag is ignored; otherwise weak tags are never equal.
    """
    rest = header.strip(_SPACE)
    while rest:
        if rest[0] == ",":
            rest = rest[1:].lstrip(_SPACE)
        elif rest[0] == "*":
            return True
        elif (tag := _TAG.match(rest)) is None:
            return False
        elif _same(tag[0], etag, weak=weak):
            return True
        else:
            rest = rest[tag.end() :].lstrip(_SPACE)
    return False


def _same(tag: str, etag: str, *, weak: bool) -> bool:
    return (tag.removeprefix("W/") == etag.removeprefix("W/")) if weak else (tag == etag and tag.startswith('"'))


def _time(header: str) -> float | None:
    try:
        return parsedate_to_datetime(header).timestamp() if header else None
    except (ValueError, TypeError, OverflowError):
        return None


def _seconds(moment: datetime) -> float:
    return moment.replace(microsecond=0).timestamp()
