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
        before: the text before the age.
        after: the text after it.
    """

    moment: float
    before: str = ""
    after: str = ""

    def text(self, now: float) -> str:
        """Return the text of the cell at a time, given in seconds since the epoch."""
        return self.before + human_duration(now - self.moment) + self.after


def since(timestamp: str | None, before: str = "", after: str = "") -> TimedCell | str:
    """Return a cell with the time since an RFC 3339 timestamp.

    Instead of the age, the cell has "<unknown>" for a missing or empty timestamp, and "<invalid>" for one that cannot
    be parsed.

    Args:
        timestamp: the timestamp.
        before: the text before the age.
        after: the text after it.

    Upstream: pkg/printers/internalversion/printers.go, translateTimestampSince
    """
    if not timestamp:
        return f"{before}{UNKNOWN}{after}"
    try:
        return Elapsed(parse(timestamp).timestamp(), before, after)
    except ValueError:
        return f"{before}<invalid>{after}"
