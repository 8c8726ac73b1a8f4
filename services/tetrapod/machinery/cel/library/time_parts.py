"""Functions that return the parts of timestamps and durations, such as `getHours`.

Upstream: cel-go common/stdlib and common/types/timestamp.go.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from tetrapod.machinery.cel.library.signatures import Function, Functions, Signature
from tetrapod.machinery.cel.time import in_zone
from tetrapod.machinery.cel.values import Duration, Timestamp


def _accessor(read: Callable[[datetime], int], unit: int | None = None) -> list[tuple[Signature, Function]]:
    """Return the signatures and functions of a CEL function such as `getHours`, which returns a part of a timestamp.

    The part is in UTC, or in the time zone of the second argument.

    Args:
        read: returns the part of a date and time.
        unit: nanoseconds in one unit of the part, for a function that accepts durations too. For a duration it returns
            the number of whole units, such as hours.
    """

    def field(moment: Timestamp, zone: str | None = None) -> int:
        return read(in_zone(moment, zone))

    signatures: list[tuple[Signature, Function]] = [((Timestamp,), field), ((Timestamp, str), field)]
    if unit is not None:

        def part(value: Duration) -> int:
            total = abs(value.ns) // unit
            return -total if value.ns < 0 else total

        signatures.append(((Duration,), part))
    return signatures


FUNCTIONS: Final[Functions] = {
    "getFullYear": _accessor(lambda m: m.year),
    "getMonth": _accessor(lambda m: m.month - 1),
    "getDayOfYear": _accessor(lambda m: m.timetuple().tm_yday - 1),
    "getDayOfMonth": _accessor(lambda m: m.day - 1),
    "getDate": _accessor(lambda m: m.day),
    "getDayOfWeek": _accessor(lambda m: m.isoweekday() % 7),
    "getHours": _accessor(lambda m: m.hour, 3_600_000_000_000),
    "getMinutes": _accessor(lambda m: m.minute, 60_000_000_000),
    "getSeconds": _accessor(lambda m: m.second, 1_000_000_000),
    "getMilliseconds": _accessor(lambda m: m.microsecond // 1000, 1_000_000),
}
