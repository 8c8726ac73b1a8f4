"""`Worker`: the number of this process among the workers of one server (--workers), and what they share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tetrapod.generic.http.listening import ConnectionSource


@dataclass(frozen=True, slots=True)
class Worker:
    """One of several processes that serve the same port.

    Attributes:
        index: the number of the worker, from 0. A worker that replaces another one has its number.
        count: the number of workers.
        directory: a directory for what the workers share: the exchange of metrics, and the locks of the audit log.
        source: passes connections to the worker.
    """

    index: int
    count: int
    directory: Path
    source: ConnectionSource

    @property
    def first(self) -> bool:
        """Whether this worker does what one process does for the whole server, such as renewing certificates."""
        return self.index == 0

    def share(self, limit: int) -> int:
        """Return the part of a limit of the whole server that applies to this worker; 0 for no limit.

        The workers get equal parts of at least 1; the first ones get one more if the limit cannot be divided evenly.
        """
        return limit and max(1, limit // self.count + (self.index < limit % self.count))
