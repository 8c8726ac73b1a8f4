"""Timestamps and durations: parsing, formatting, range checks and time zones.

Upstream: cel-go common/types/timestamp.go, duration.go and overflow.go.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.values import Duration, Timestamp
from tetrapod.machinery.golang.durations import parse_nanoseconds
from tetrapod.machinery.golang.integers import decimal_number

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000_000_000
_MIN: Final = -62135596800 * _SECOND
_MAX: Final = 253402300799 * _SECOND + _SECOND - 1
_INT64: Final = 1 << 63
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)


_PART: Final = re.compile(r"(?<![0-9])([0-9]++)\s*+([A-Za-zµ]+)")
"""A number and its unit. Each number is tried once, from its first digit: thousands of digits may have no unit."""
_UNITS: Final = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 1_000),
    (("ms", "milli"), 1_000_000),
    (("s", "sec"), _SECOND),
    (("m", "min"), 60 * _SECOND),
    (("h", "hr", "hour"), 3600 * _SECOND),
    (("d", "day"), 86400 * _SECOND),
    (("w", "wk", "week"), 7 * 86400 * _SECOND),
)


def parse_timestamp(text: str) -> Timestamp | None:
    """Parse an RFC 3339 timestamp as Go does. The result is None if the text is invalid.

    Raises:
        EvaluationError: the timestamp is outside of the years 1 to 9999.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    offset = (int(match[9]) * 60 + int(match[10])) * 60 if match[8] else 0
    if (match[8] and (int(match[9]) > 24 or int(match[10]) > 59)) or hour > 23:
        return None
    try:
        moment = datetime(max(year, 1), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = int((moment - _EPOCH).total_seconds()) - (366 * 86400 if year == 0 else 0)
    seconds += offset if match[8] == "-" else -offset
    return checked_timestamp(seconds * _SECOND + int((match[7] or "0")[:9].ljust(9, "0")))


def checked_timestamp(ns: int) -> Timestamp:
    """Return the timestamp that is `ns` nanoseconds after 1970-01-01 UTC.

    Raises:
        EvaluationError: it is outside of the years 1 to 9999.
    """
    if not _MIN <= ns <= _MAX:
        raise EvaluationError("timestamp overflow")
    return Timestamp(ns)


def checked_duration(ns: int) -> Duration:
    """Return a duration of `ns` nanoseconds.

    Raises:
        EvaluationError: the number does not fit into int64.
    """
    if not -_INT64 <= ns < _INT64:
        raise EvaluationError("integer overflow")
    return Duration(ns)


def parse_duration(text: str) -> Duration | None:
    """Parse a duration as Go does, such as `1h30m`. The result is None if the text is invalid."""
    try:
        return Duration(parse_nanoseconds(text))
    except ValueError:
        return None


def text_of(value: Timestamp | Duration) -> str:
    """Return the text of a timestamp or duration, as `string()` converts it.

    A timestamp is in RFC 3339 with up to nine fractional digits, and a duration in seconds, such as `1.5s`.
    """
    if isinstance(value, Duration):
        whole, rest = divmod(abs(value.ns), _SECOND)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if value.ns < 0 else ''}{whole}{fraction}s"
    seconds, rest = divmod(value.ns, _SECOND)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


def in_zone(value: Timestamp, zone: str | None) -> datetime:
    """Return a timestamp as date and time in a time zone, to microseconds.

    Args:
        value: the timestamp.
        zone: a name such as `Europe/Berlin`, or an offset `hours:minutes`; None means UTC.

    Raises:
        EvaluationError: the time zone is unknown or invalid, or the year there is not from 1 to 9999.
    """
    moment = _EPOCH + timedelta(seconds=value.ns // _SECOND, microseconds=value.ns % _SECOND // 1000)
    if zone is None:
        return moment
    try:
        if ":" not in zone:
            return moment.astimezone(_zone(zone))
        return moment + _offset(zone)  # datetime.timezone rejects offsets of a day or more
    except OverflowError:  # the years 0 and 10000, which Python cannot represent
        raise EvaluationError(f"unknown time zone {zone}") from None


def _zone(name: str) -> tzinfo | None:
    """Return the time zone of a name. None means the local zone of this machine, as in `datetime.astimezone`.

    Raises:
        EvaluationError: the name is invalid or unknown.
    """
    if name in ("", "UTC"):
        return UTC
    if name == "Local":
        return None
    if ".." in name.replace("\\", "/").split("/") or name[0] in "/\\":
        raise EvaluationError("time: invalid location name")
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _offset(name: str) -> timedelta:
    """Parse an offset `hours:minutes`; neither number is limited.

    Raises:
        EvaluationError: a part is not a number.
    """
    hours, _, minutes = name.partition(":")
    try:
        hour, minute = int(hours), int(minutes)
    except ValueError:
        invalid = hours if not hours.lstrip("+-").isdigit() else minutes
        raise EvaluationError(f'strconv.Atoi: parsing "{invalid}": invalid syntax') from None
    return timedelta(minutes=hour * 60 - minute if hours.startswith("-") else hour * 60 + minute)


def parse_words(text: str) -> Duration | None:
    """Return the sum of all numbers with a unit in a text, such as `2 days`.

    The result is None if no number has a known unit, or if a number does not fit into int64.

    Upstream: kube-openapi/pkg/validation/strfmt/duration.go.
    """
    total, has_unit = 0, False
    for digits, unit in _PART.findall(text):
        number, unit = decimal_number(digits), unit.strip().lower()
        if number >= _INT64:
            return None
        for names, size in _UNITS:
            for name in names:
                if name == unit or (name == names[-1] and unit.startswith(name)):
                    has_unit = True
                    total += number * size
    # As in upstream, a sum beyond int64 wraps around.
    return Duration((total + _INT64) % (2 * _INT64) - _INT64) if has_unit else None
