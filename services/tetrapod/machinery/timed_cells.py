"""Cells of Tables whose text depends on the time, such as ages.

The other cells of a row depend on the object alone. So a row is computed once for each revision of an object, and these
cells are formatted whenever it is sent.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tetrapod.machinery.golang.durations import human_duration
from tetrapod.machinery.timestamps import parse

UNKNOWN: Final = "<unknown>"


class TimedCell(msgspec.Struct, frozen=True, gc=False):
    """A cell whose text depends on the time. It is immutable, and must not refer to anything that can refer to it."""

    def text(self, now: float) -> str:
        """Return the text of the cell at a time, given in seconds since the epoch."""
        raise NotImplementedError


class Elapsed(TimedCell, frozen=True, gc=False):
    """The time since a moment, as `kubectl get` shows ages ("5m3s").

    Attributes:
        moment: seconds since the epoch.
        prefix: the text before the age.
        suffix: the text after it.
    """

    moment: float
    prefix: str = ""
    suffix: str = ""

    def text(self, now: float) -> str:
        """Return the text of the cell at a time, given in seconds since the epoch."""
        return self.prefix + human_duration(now - self.moment) + self.suffix


def since(timestamp: str | None, prefix: str = "", suffix: str = "") -> TimedCell | str:
    """Return a cell with the time since an RFC 3339 timestamp.

    Instead of the age, the cell has "<unknown>" for a missing or empty timestamp, and "<invalid>" for one that cannot
    be parsed.

    Args:
        timestamp: the timestamp.
        prefix: the text before the age.
        suffix: the text after it.

    Upstream: pkg/printers/internalversion/printers.go, translateTimestampSince
    """
    if not timestamp:
        return f"{prefix}{UNKNOWN}{suffix}"
    try:
        return Elapsed(parse(timestamp).timestamp(), prefix, suffix)
    except ValueError:
        return f"{prefix}<invalid>{suffix}"
