"""Conditions and ranges of a request for a document, as Go's http.ServeContent judges them (net/http/fs.go)."""

from __future__ import annotations

import re
from datetime import datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final

from tetrapod.generic.request import Request

INVALID: Final = "invalid range"
NO_OVERLAP: Final = "invalid range: failed to overlap"
_TAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_NUMBER: Final = re.compile(r"\+?[0-9]{1,18}")
_SPACE: Final = " \t\r\n"


class Outcome(Enum):
    SEND = 200
    UNCHANGED = 304
    FAILED = 412


class BadRange(ValueError):
    """A Range header that cannot be served; the text is the answer's."""


def outcome(request: Request, etag: str, modified: datetime) -> Outcome:
    """What becomes of a request for a document with this tag ("" for none) and time."""
    if not _holds(request, etag, modified):
        return Outcome.FAILED
    reading = request.method in ("GET", "HEAD")
    if none_match := request.header(b"if-none-match"):
        if not _names(none_match, etag, weak=True):
            return Outcome.SEND
        return Outcome.UNCHANGED if reading else Outcome.FAILED
    since = _time(request.header(b"if-modified-since")) if reading else None
    return Outcome.UNCHANGED if since is not None and _seconds(modified) <= since else Outcome.SEND


def _holds(request: Request, etag: str, modified: datetime) -> bool:
    if match := request.header(b"if-match"):
        return _names(match, etag, weak=False)
    since = _time(request.header(b"if-unmodified-since"))
    return since is None or _seconds(modified) <= since


def range_of(request: Request, etag: str, modified: datetime) -> str:
    """The Range header, where If-Range lets it count."""
    condition = request.header(b"if-range")
    if not condition or request.method not in ("GET", "HEAD"):
        return request.header(b"range")
    if tag := _TAG.match(condition.strip(_SPACE)):
        holds = _same(tag[0], etag, weak=False)
    else:
        holds = _time(condition) == _seconds(modified)
    return request.header(b"range") if holds else ""


def ranges(header: str, size: int) -> list[tuple[int, int]]:
    """Start and length of each range that is asked for.

    Raises:
        BadRange: none can be served.
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
    """None where it lies behind the end."""
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


def _names(header: str, etag: str, *, weak: bool) -> bool:
    """Whether a list of tags names this one; what follows the first that is no tag is not looked at."""
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
