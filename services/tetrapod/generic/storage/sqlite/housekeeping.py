"""Background work of the embedded store: deleting the keys of expired leases, and compacting old history.

It uses timers instead of tasks, so an idle store wakes up only once per compaction interval.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import Compacted, FutureRevision
from tetrapod.generic.storage.sqlite.space import Space
from tetrapod.generic.storage.sqlite.writer import Writer

log = logging.getLogger(__name__)

SWEEP = 500  # keys or revisions per transaction
SWEEP_BYTES = 4 << 20  # of values per transaction
SWEEP_WHEN_FULL, SWEEP_BYTES_WHEN_FULL = 50, 256 << 10  # the same while the disk is full
RECLAIM_SECONDS = 1.0  # between two attempts to get space back


class Housekeeping:
    """The timers of one store: for the compaction of its history, and for the expiry of leases.

    History is kept for at least `history` seconds, and at most twice as long.

    Args:
        writer: the writer of the store.
        revision: returns the store's current revision.
        history: seconds.
        space: the reserve of disk space; None without one.
        clock: returns the time with which the expiry of leases is compared; Unix time, because it is stored.
    """

    def __init__(
        self,
        writer: Writer,
        revision: Callable[[], int],
        history: float,
        *,
        space: Space | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.clock = clock
        self._writer = writer
        self._revision = revision
        self._history = history
        self._space = space
        self._reclaiming = False
        self._next_sweep: asyncio.TimerHandle | None = None
        self._next_compaction: asyncio.TimerHandle | None = None
        self._task: set[asyncio.Task[None]] = set()

    def start(self, next_expiry: float | None) -> None:
        """Start the timers. `next_expiry` is the time (of `clock`) at which the first lease expires, or None."""
        if next_expiry is not None:
            self.schedule_expiry(next_expiry)
        self._plan_compaction(self._revision())
        if self._space is not None and self._space.full:
            self.reclaim()

    def schedule_expiry(self, when: float) -> None:
        """Schedule a sweep for a lease that expires at the time `when` (of `clock`).

        Do nothing if an earlier one is scheduled.
        """
        deadline = asyncio.get_running_loop().time() + max(0.0, when - self.clock())
        if self._next_sweep is not None:
            if self._next_sweep.when() <= deadline:
                return
            self._next_sweep.cancel()
        self._next_sweep = asyncio.get_running_loop().call_at(deadline, self._start, self.sweep)

    async def sweep(self) -> None:
        """Delete the keys of every expired lease, as ordinary deletions with events, and schedule the next sweep."""
        self._next_sweep = None
        now = self.clock()
        while await self._writer.submit(lambda t: t.expire(now, self._sweep_size()[0]), deleting=True):
            pass
        following = await self._writer.submit(lambda t: t.next_expiry(), deleting=True)
        if following is not None:
            self.schedule_expiry(following)

    async def compact(self, revision: int) -> None:
        """Discard the history before `revision`, in several transactions.

        Raises:
            Compacted: this or a later revision has been compacted before.
            FutureRevision: `revision` has not been reached.
        """
        while await self._writer.submit(lambda t: t.compact(revision, *self._sweep_size()), deleting=True):
            pass

    def _sweep_size(self) -> tuple[int, int]:
        if self._space is not None and self._space.full:
            return SWEEP_WHEN_FULL, SWEEP_BYTES_WHEN_FULL
        return SWEEP, SWEEP_BYTES

    def reclaim(self) -> None:
        """Begin to get space back, until the reserve is whole again: the whole history is compacted every second."""
        if not self._reclaiming:
            self._reclaiming = True
            self._start(self._reclaim)

    async def _reclaim(self) -> None:
        space = self._space
        try:
            while space is not None and not await asyncio.to_thread(space.restore):
                with contextlib.suppress(Compacted, FutureRevision, Unavailable):
                    await self.compact(self._revision())
                await asyncio.sleep(RECLAIM_SECONDS)
        finally:
            self._reclaiming = False

    def _plan_compaction(self, revision: int) -> None:
        self._next_compaction = asyncio.get_running_loop().call_later(
            self._history, self._start, lambda: self._compact_to(revision)
        )

    async def _compact_to(self, revision: int) -> None:
        self._plan_compaction(self._revision())
        # Nothing was written since, or another caller compacted further.
        with contextlib.suppress(Compacted, FutureRevision):
            await self.compact(revision)

    def _start(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        task = asyncio.get_running_loop().create_task(work())
        self._task.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Unavailable):
            log.error("housekeeping of the embedded store failed: %s", error, exc_info=error)

    async def close(self) -> None:
        """Cancel the timers and the work in progress, and wait for its end."""
        for timer in (self._next_sweep, self._next_compaction):
            if timer is not None:
                timer.cancel()
        for task in list(self._task):
            task.cancel()
        await asyncio.gather(*self._task, return_exceptions=True)
