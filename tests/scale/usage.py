"""The CPU time and memory of a server and of its store during a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from bench.processes import cpu_of, resident
from scale.model import Line, line_through
from scale.results import Used


class Sampler:
    """Samples processes once a second until the end of its context."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._samples: list[tuple[float, int]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._cpu = cpu_of(self._pids)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._seconds = time.monotonic() - self._began
        self._used = cpu_of(self._pids) - self._cpu

    def _run(self) -> None:
        while True:
            self._samples.append((time.monotonic() - self._began, sum(map(resident, self._pids))))
            if self._ended.wait(1):
                return

    def line(self, after: float) -> Line:
        """Return the line through the resident memory in bytes by the seconds of the context.

        Args:
            after: the seconds before which samples do not count.
        """
        return line_through([sample for sample in self._samples if sample[0] >= after])

    def used(self) -> Used:
        """Return what was used. Call it after the end of the context."""
        return Used(
            self._used / self._seconds, max(size for _, size in self._samples), line_through(self._samples).each * 3600
        )
