"""Times on the wire: metav1.Time (RFC 3339 in whole seconds) and metav1.MicroTime (six digits of a second), always UTC.

Follows k8s.io/apimachinery/pkg/apis/meta/v1/time.go and micro_time.go. A zero time is null, so it is None here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from tetrapod.machinery.duration import human_duration
from tetrapod.machinery.field import go_quote

_rfc3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII).fullmatch
_MICRO_DIGITS: Final = 6
_DATE: Final = (("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"))
_CLOCK: Final = (("15", r"\d\d"), (":", ":"), ("04", r"\d\d"), (":", ":"))
_ZONE: Final = ("Z07:00", r"Z|[+-]\d\d:\d\d")
_LAYOUT: Final = (*_DATE, *_CLOCK, ("05", r"\d\d(?:[.,]\d+)?"), _ZONE)
_MICRO_LAYOUT: Final = (*_DATE, *_CLOCK, ("05", r"\d\d"), (".000000", r"[.,]\d{6,}"), _ZONE)


def now() -> datetime:
    return datetime.now(UTC)


def now_rfc3339() -> str:
    return format_time(datetime.now(UTC))


def now_micro() -> str:
    return format_micro(datetime.now(UTC))


def format_time(moment: datetime) -> str:
    """`2026-11-21T10:12:20Z`; what is below the second is cut."""
    moment = moment.astimezone(UTC)
    return f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}T{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}Z"


def format_micro(moment: datetime) -> str:
    """`2026-11-21T10:12:20.000000Z`."""
    return f"{format_time(moment)[:-1]}.{moment.microsecond:06d}Z"


def parse(text: str) -> datetime:
    """Parse RFC 3339 with or without a fraction.

    Raises:
        ValueError: with Go's text.
    """
    found = _rfc3339(text)
    if found is None:
        raise ValueError(_explain(text, _LAYOUT))
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    micro = int((found[7] or "0")[:_MICRO_DIGITS].ljust(_MICRO_DIGITS, "0"))
    offset = timedelta(hours=int(found[9]), minutes=int(found[10])) if found[8] else timedelta()
    try:
        zone = timezone(-offset if found[8] == "-" else offset)
        return datetime(year, month, day, hour, minute, second, micro, zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        part = str(error).partition(" ")[0]
        raise ValueError(f"parsing time {go_quote(text)}: {part} out of range") from None


def _explain(text: str, layout: tuple[tuple[str, str], ...]) -> str:
    """Go's text for a time that does not follow the layout: the rest of it, and the part of the layout it stops at."""
    shown = f"parsing time {go_quote(text)}"
    rest = text
    for name, pattern in layout:
        found = re.match(pattern, rest, re.ASCII)
        if found is None:
            whole = go_quote("".join(part for part, _ in layout))
            return f"{shown} as {whole}: cannot parse {go_quote(rest)} as {go_quote(name)}"
        rest = rest[found.end() :]
    return f"{shown}: extra text: {go_quote(rest)}"


def parse_micro(text: str) -> datetime:
    """Parse a MicroTime, which needs six digits of a second at least."""
    found = _rfc3339(text)
    if found is None or len(found[7] or "") < _MICRO_DIGITS:
        raise ValueError(_explain(text, _MICRO_LAYOUT))
    return parse(text)


def age(text: str | None) -> str:
    """How long ago a time was, as tables show it: `<unknown>` without one, `<invalid>` where it cannot be read."""
    if not text:
        return "<unknown>"
    try:
        return human_duration((datetime.now(UTC) - parse(text)).total_seconds())
    except ValueError:
        return "<invalid>"
