"""Validation of cron schedules (`spec.schedule` of a CronJob).

The error texts are those of the parser that upstream uses: github.com/robfig/cron/v3, ParseStandard.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tetrapod.machinery.golang.durations import parse_duration
from tetrapod.machinery.golang.integers import atoi

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})


class _Bounds(NamedTuple):
    low: int
    high: int
    names: dict[str, int]


_FIELDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: i for i, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: i for i, name in enumerate(_DAYS)}),
)


def schedule_error(schedule: str) -> str:
    """Return the parser's error text for a schedule, or "" if it is valid."""
    try:
        _parse(schedule)
    except ValueError as error:
        return str(error)
    return ""


def _parse(text: str) -> None:
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, space, text = text.partition(" ")
        if not space:  # upstream's parser panics
            raise ValueError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        name = zone.partition("=")[2]
        if error := zone_error(name):
            raise ValueError(f"provided bad location {name}: {error}")
        text = text.strip()
    if text.startswith("@"):
        _descriptor(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for value, bounds in zip(fields, _FIELDS, strict=True):
        for part in filter(None, value.split(",")):
            _range(part, bounds)


def _descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith("@every "):
        raise ValueError(f"unrecognized descriptor: {text}")
    try:
        parse_duration(text.removeprefix("@every "))
    except ValueError as error:
        raise ValueError(f"failed to parse duration {text}: {error}") from None


def _range(text: str, bounds: _Bounds) -> None:
    span, *steps = text.split("/")
    low, *high = span.split("-")
    if low in ("*", "?"):
        start, end = bounds.low, bounds.high
    else:
        start = end = _number(low, bounds.names)
        if len(high) > 1:
            raise ValueError(f"too many hyphens: {text}")
        if high:
            end = _number(high[0], bounds.names)
    step = 1
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    if steps:
        step = _integer(steps[0])
        end = end if high else bounds.high
    if start < bounds.low:
        raise ValueError(f"beginning of range ({start}) below minimum ({bounds.low}): {text}")
    if end > bounds.high:
        raise ValueError(f"end of range ({end}) above maximum ({bounds.high}): {text}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    try:
        number = atoi(text)
    except ValueError as error:
        raise ValueError(f"failed to parse int from {text}: {error}") from None
    if number < 0:
        raise ValueError(f"negative number ({number}) not allowed: {text}")
    return number


def zone_error(name: str) -> str:
    """Return Go's error text for a time zone that its database does not contain; "" for a known zone.

    "", "UTC" and "Local" are known too.

    Upstream: Go's time.LoadLocation.
    """
    from zoneinfo import ZoneInfo  # imported late: only servers with CronJobs need it

    if name in ("", "UTC", "Local"):
        return ""
    if ".." in name or name[0] in "/\\":
        return "time: invalid location name"
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return f"unknown time zone {name}"
    return ""
