"""Durations with units in words, such as `2 days`. Upstream: kube-openapi/pkg/validation/strfmt/duration.go."""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.cel.values import Duration

_PART: Final = re.compile(r"([0-9]+)\s*([A-Za-zµ]+)")
_SECOND: Final = 1_000_000_000
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


def parse_words(text: str) -> Duration | None:
    """Return the sum of all numbers with a unit in a text, such as `2 days`, or None if there are none."""
    total, has_unit = 0, False
    for number, unit in _PART.findall(text):
        unit = unit.strip().lower()
        for names, size in _UNITS:
            for name in names:
                if name == unit or (name == names[-1] and unit.startswith(name)):
                    has_unit = True
                    total += int(number) * size
    return Duration(total) if has_unit else None
