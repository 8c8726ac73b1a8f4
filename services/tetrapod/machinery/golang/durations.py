"""Durations in Go's text form (`1h30m`), and the short ages in table columns (`5d3h`).

Exact arithmetic is in nanoseconds (`parse_nanoseconds`); `parse_duration` returns seconds.

Upstream: Go's time.ParseDuration and Duration.String; k8s.io/apimachinery/pkg/util/duration.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.golang.quoting import go_quote

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_MAX: Final = 1 << 63
_part = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]*)", re.ASCII).match


def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration such as `1h30m`.

    Raises:
        ValueError: the text is invalid or out of range; with Go's text.
    """
    return parse_nanoseconds(text) / 1e9


def parse_nanoseconds(text: str) -> int:
    """Return the nanoseconds of a Go duration: an optional sign, then numbers with units.

    Raises:
        ValueError: the text is invalid or out of range; with Go's text.
    """
    rest = text
    negative = rest.startswith("-")
    if rest[:1] in ("+", "-"):
        rest = rest[1:]
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(f"time: invalid duration {go_quote(text)}")
    total = at = 0
    while at < len(rest):
        part = _part(rest, at)
        whole, fraction, unit = (part[1], part[3] or "", part[4]) if part else ("", "", "")
        if not whole and not fraction:
            raise ValueError(f"time: invalid duration {go_quote(text)}")
        if not unit:
            raise ValueError(f"time: missing unit in duration {go_quote(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {go_quote(unit)} in duration {go_quote(text)}")
        scale = _UNITS[unit]
        digits = fraction[:18]
        total += int(whole[:40] or 0) * scale + int(digits or 0) * scale // 10 ** len(digits)
        if len(whole) > 40 or total > _MAX - (not negative):
            raise ValueError(f"time: invalid duration {go_quote(text)}")
        at = part.end() if part else len(rest)
    return -total if negative else total


def format_nanoseconds(nanoseconds: int) -> str:
    """Format nanoseconds as Go's Duration.String does: `1h30m0s`, `1.5s`, `250ms`, `0s`."""
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    for unit in ("ns", "µs", "ms"):
        if rest < 1000 * _UNITS[unit]:
            return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    minutes, seconds = divmod(rest, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    shown = f"{_decimal(seconds, 1_000_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{shown}"
    return f"{sign}{minutes}m{shown}" if minutes else sign + shown


def format_duration(seconds: float) -> str:
    """Format seconds as Go's Duration.String does: `1h30m0s`, `1.5s`, `250ms`, `0s`."""
    return format_nanoseconds(round(seconds * 1e9))


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1).rstrip('0')}"


def human_duration(total_seconds: float) -> str:
    """Format an age in seconds as tables show it, with at most two units.

    Examples are `0s`, `95s`, `5m3s`, `7h`, `3d4h` and `2y10d`. An age of -2 or less is `<invalid>`, and one between -2
    and 0 is `0s`.
    """
    if total_seconds < 0:
        # Less than two seconds in the future is a difference between clocks.
        return "<invalid>" if total_seconds <= -2 else "0s"
    seconds = int(total_seconds)
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = seconds // 3600
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if hours < 24 * 365 * 2:
        return f"{days}d"
    years = days // 365
    if hours < 24 * 365 * 8:
        return f"{years}y{days % 365}d" if days % 365 else f"{years}y"
    return f"{years}y"
