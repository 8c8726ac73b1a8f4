"""Decoders of times: RFC 3339 as Go's `time.Parse` reads it, with its error messages.

The two layouts are those of metav1.Time and metav1.MicroTime.

Upstream: Go's time/format.go, parse.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tetrapod.machinery.schema.decode_errors import EndingError, Mismatch

_CLOCK: Final = r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_DATES: Final = (
    r"(?!0001)[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
"""The dates of all years, without the year of Go's zero time and without 29 February."""
_CANONICAL: Final = re.compile(f"{_DATES}{_CLOCK}Z").fullmatch
_CANONICAL_MICRO: Final = re.compile(rf"{_DATES}{_CLOCK}\.[0-9]{{6}}Z").fullmatch
"""Match times in canonical form, which need no further check."""

_GO_ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)
_SECONDS: Final = "2006-01-02T15:04:05Z07:00"
_MICROSECONDS: Final = "2006-01-02T15:04:05.000000Z07:00"
_PARTS: Final = (
    ("2006", r"[0-9]{4}", ""), ("-", "-", ""), ("01", r"[0-9]{2}", "month"), ("-", "-", ""), ("02", r"[0-9]{2}", ""),
    ("T", "T", ""),
    ("15", r"[0-9]{1,2}", "hour"), (":", ":", ""), ("04", r"[0-9]{2}", "minute"), (":", ":", ""),
    ("05", r"[0-9]{2}", "second"),
)  # fmt: skip
_LIMITS: Final = {"month": range(1, 13), "hour": range(24), "minute": range(60), "second": range(60)}
_OFFSET: Final = re.compile(r"([+-])([0-9]{2}):([0-9]{2})")


def time(value: Any) -> Any:
    """Return the canonical form of a metav1.Time, in UTC and whole seconds, or None for null and for Go's zero time.

    Raises:
        Mismatch: the value is not a string.
        EndingError: the string is not an RFC 3339 time.
    """
    if value is None or (value.__class__ is str and _CANONICAL(value)):
        return value
    moment = _parse(value, _SECONDS)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def micro_time(value: Any) -> Any:
    """Return the canonical form of a metav1.MicroTime, which is in UTC with microseconds.

    The result is None for null and for Go's zero time.

    Raises:
        Mismatch: the value is not a string.
        EndingError: the string is not a time with exactly six fractional digits.
    """
    if value is None or (value.__class__ is str and _CANONICAL_MICRO(value)):
        return value
    moment = _parse(value, _MICROSECONDS)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def _parse(value: Any, layout: str) -> datetime | None:
    """Parse a time in a layout and return it in UTC, or None for Go's zero time.

    Args:
        value: the JSON value.
        layout: `_MICROSECONDS`, which requires six fractional digits, or Go's layout of RFC 3339; errors quote it.

    Raises:
        Mismatch: the value is not a string.
        EndingError: the string does not match the layout.
    """
    if value.__class__ is not str:
        raise Mismatch(value, "string", ends=True)
    remaining, numbers = value, []
    for part, pattern, name in _PARTS:
        match = re.match(pattern, remaining, re.ASCII)
        if match is None:
            raise _unreadable(value, layout, remaining, part)
        remaining = remaining[match.end() :]
        if name and int(match[0]) not in _LIMITS[name]:
            raise _rejected(value, f"{name} out of range")
        if match[0].isdigit():
            numbers.append(int(match[0]))
    fraction = re.match(r"[.,][0-9]{6}" if layout is _MICROSECONDS else r"[.,][0-9]+", remaining, re.ASCII)
    if fraction is not None:
        remaining = remaining[fraction.end() :]
    elif layout is _MICROSECONDS:
        raise _unreadable(value, layout, remaining, ".000000")
    remaining, offset = _offset(value, layout, remaining)
    if remaining:
        raise _rejected(value, f"extra text: {_quote(remaining)}")
    year, month, day = numbers[:3]
    if not 1 <= day <= monthrange(year or 4, month)[1]:  # the year 0, which Python lacks, was a leap year
        raise _rejected(value, "day out of range")
    try:
        moment = datetime(*numbers, int(fraction[0][1:7].ljust(6, "0")) if fraction else 0, tzinfo=UTC) - offset  # type: ignore[misc, arg-type]
    except (ValueError, OverflowError):
        raise _rejected(value, "year out of range") from None
    return None if moment == _GO_ZERO else moment


def _offset(value: str, layout: str, rest: str) -> tuple[str, timedelta]:
    """Parse the time zone at the beginning of `rest`, and return the text after it and the offset from UTC.

    Args:
        value: the whole text, for errors.
        layout: Go's layout of the time, for errors.
        rest: the text from the time zone on.

    Raises:
        EndingError: the text is not a time zone.
    """
    if rest.startswith("Z"):
        return rest[1:], timedelta()
    match = _OFFSET.match(rest)
    if match is None:
        raise _unreadable(value, layout, rest, "Z07:00")
    hours, minutes = int(match[2]), int(match[3])
    if minutes > 60:
        raise _rejected(value, "time zone offset minute out of range")
    if hours > 24:
        raise _rejected(value, "time zone offset hour out of range")
    offset = timedelta(hours=hours, minutes=minutes)
    return rest[match.end() :], offset if match[1] == "+" else -offset


def _unreadable(value: str, layout: str, rest: str, part: str) -> EndingError:
    return EndingError(f'parsing time {_quote(value)} as "{layout}": cannot parse {_quote(rest)} as "{part}"')


def _rejected(value: str, why: str) -> EndingError:
    return EndingError(f"parsing time {_quote(value)}: {why}")


def _quote(text: str) -> str:
    """Quote a string like `time.quote` in Go: bytes below 0x20 and from 0x80 on are written in hexadecimal."""
    parts = (
        "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "replace")) if char >= "\x80" or char < " " else char
        for char in text.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{"".join(parts)}"'
