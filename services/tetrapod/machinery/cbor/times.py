"""Times in CBOR: RFC 3339 text (tag 0) and seconds since 1970 (tag 1), as Go writes them in RFC 3339.

Upstream: github.com/fxamacker/cbor, parseToTime; Go's time.Time.MarshalText
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from tetrapod.machinery import timestamps
from tetrapod.machinery.golang.quoting import go_quote

_RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UTC: Final = ("+00:00", "-00:00")


def from_text(text: str) -> str:
    """Return a time in RFC 3339 with at most nine digits of the fraction, and without its trailing zeros.

    Raises:
        ValueError: the text is not a time in RFC 3339.
    """
    match = _RFC3339.fullmatch(text)
    try:
        timestamps.parse(text)
        if match is None:
            raise ValueError(f"parsing time {go_quote(text)}")
    except ValueError as error:
        raise ValueError(f"cbor: cannot set {text} for time.Time: {error}") from None
    seconds, fraction, zone = match.groups()
    return _joined(seconds, (fraction or "")[:9], "Z" if zone in _UTC else zone)


def from_epoch(seconds: float) -> str:
    """Return a number of seconds since 1970 as a UTC time in RFC 3339, with at most nine digits of the fraction.

    Raises:
        ValueError: the year has not four digits.
    """
    fraction, whole = math.modf(seconds) if isinstance(seconds, float) else (0.0, seconds)
    nanoseconds = int(fraction * 1e9)
    if nanoseconds < 0:
        whole, nanoseconds = whole - 1, nanoseconds + 1_000_000_000
    try:
        moment = _EPOCH + timedelta(seconds=int(whole))
    except OverflowError:
        raise ValueError(
            "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: "
            "Time.MarshalText: year outside of range [0,9999]"
        ) from None
    return _joined(timestamps.format_time(moment)[:-1], f"{nanoseconds:09}", "Z")


def _joined(seconds: str, fraction: str, zone: str) -> str:
    fraction = fraction.rstrip("0")
    return f"{seconds}.{fraction}{zone}" if fraction else seconds + zone
