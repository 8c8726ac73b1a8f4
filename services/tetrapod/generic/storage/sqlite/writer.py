"""`Writer`: group commit. Writes that arrive together, or while the disk is busy, share one transaction and one sync.

The statements of a batch run on the event loop (microseconds each, in SQLite's page cache). Only COMMIT, which waits
for the disk, runs in the writer thread. The thread therefore needs the GIL twice per batch instead of at every
statement, and a busy event loop does not slow it down. Callers get their results after the commit, so an acknowledged
write survives a power failure. A database in memory has no disk to wait for, and each write is committed at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import NoSpace
from tetrapod.generic.storage.sqlite.space import FULL_TEXT, Space
from tetrapod.generic.storage.sqlite.transaction import Transaction
from tetrapod.machinery.failure import Failure

log = logging.getLogger(__name__)

T = TypeVar("T")
Operation = Callable[[Transaction], Any]
BATCH = 256
"""Maximum number of writes in one transaction."""
BATCH_WHEN_FULL = 16
"""The same while the disk is full, so that a transaction takes little of the reserve."""
SLICE_SECONDS = 0.0005
"""Maximum time that the statements of a batch occupy the event loop in one step."""
DISK_SHARE = 0.25
"""A batch accepts operations until they have taken this share of the duration of the last commit, and for at least one
slice.
"""


class _Write(NamedTuple):
    """A write that a caller waits for.

    Attributes:
        operation: changes the tables.
        future: that of the caller.
        deleting: whether the write may use the reserve of disk space.
    """

    operation: Operation
    future: asyncio.Future[Any]
    deleting: bool


class _Batch:
    """Writes that share a transaction.

    - `writes` are those in the batch.
    - `done` holds each caller's future with its result, or with the error of its own operation.
    - `seconds` is the time that the operations have taken.
    """

    __slots__ = ("done", "seconds", "transaction", "writes")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.writes: list[_Write] = []
        self.done: list[tuple[asyncio.Future[Any], Any, Failure[Exception] | None]] = []
        self.seconds = 0.0

    def run(self, write: _Write, admits: Callable[[_Write], bool]) -> None:
        """Run one operation and record its result or error in `done`; skip it if its caller was cancelled.

        The future of the caller is not completed here, because the commit comes first.

        Args:
            write: the operation.
            admits: returns whether there is space for the write. The error of the others is `NoSpace`.

        Raises:
            sqlite3.Error: the database failed, which fails the whole batch.
        """
        if write.future.cancelled():
            return
        self.writes.append(write)
        try:
            if not admits(write):
                raise NoSpace(FULL_TEXT)
            self.done.append((write.future, write.operation(self.transaction), None))
        except sqlite3.Error:
            raise
        except Exception as error:
            self.done.append((write.future, None, Failure(error)))


class Writer:
    """The writer of one database, which runs write operations in batches that share a transaction.

    Args:
        connection: the connection on which the transactions run; no other task may use it.
        begin: creates the next transaction.
        committed: called with the transaction after each commit, before the callers of `submit` get their results.
        threaded: commit in a thread, for a database on disk.
        space: the reserve of disk space; None without one.
        filled: called when the disk is found full.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        begin: Callable[[], Transaction],
        committed: Callable[[Transaction], None],
        *,
        threaded: bool,
        space: Space | None = None,
        filled: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._begin = begin
        self._committed = committed
        self._space = space
        self._filled = filled
        self._pending: deque[_Write] = deque()
        self._thread = ThreadPoolExecutor(1, "tetrapod-sqlite-commit") if threaded else None
        self._busy = False
        self._log_moved = False  # by `_make_room_in_thread`, since the last commit
        self._disk = 0.0  # seconds that the last commit took
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def submit(self, operation: Callable[[Transaction], T], *, deleting: bool = False) -> T:
        """Run `operation` in a transaction shared with others, and return its result once the transaction is on disk.

        An operation may raise an error only before it writes anything; the error is passed on to the caller. It is
        called again if the transaction fails because the disk is full.

        Args:
            operation: changes the tables.
            deleting: whether the write frees space, or belongs to a deletion, and may use the reserve.

        Raises:
            NoSpace: the disk is full.
            Unavailable: the store is closed or could not write.
        """
        if self._closed:
            raise Unavailable("the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._pending.append(_Write(operation, future, deleting))
        if self._thread is None:
            self._run_batch()
        elif not self._busy:
            self._busy = True
            self._idle.clear()
            loop.call_soon(self._run_batch)
        return await future

    def _run_batch(self) -> None:
        batch = _Batch(self._begin())
        try:
            batch.transaction.begin()
        except sqlite3.Error as error:
            if self._pending:
                batch.writes.append(self._pending.popleft())
            self._failed(batch, error)
        else:
            self._fill(batch)

    def _fill(self, batch: _Batch) -> None:
        """Run pending operations in the batch's transaction for `SLICE_SECONDS`, then commit it.

        If more operations are pending, it continues in the loop's next step instead. It commits at the latest when the
        batch has taken a share (`DISK_SHARE`) of the time of the last commit: after a slow commit, syncing a larger
        batch is more efficient. An error of SQLite fails all operations of the batch.
        """
        started = now = time.perf_counter()
        most = BATCH_WHEN_FULL if self._space is not None and self._space.full else BATCH
        try:
            while self._pending and len(batch.writes) < most and now - started < SLICE_SECONDS:
                batch.run(self._pending.popleft(), self._admits)
                now = time.perf_counter()
        except sqlite3.Error as error:
            self._failed(batch, error)
            return
        batch.seconds += now - started
        loop = asyncio.get_running_loop()
        if self._thread is None or not batch.transaction.changed:
            self._finish_batch(batch, self._commit())
        elif self._pending and len(batch.writes) < most and batch.seconds < self._disk * DISK_SHARE:
            loop.call_soon(self._fill, batch)
        else:
            self._thread.submit(self._commit_in_thread, loop, batch)

    def _admits(self, write: _Write) -> bool:
        return write.deleting or self._space is None or self._space.admits(self._connection)

    def _commit(self) -> sqlite3.Error | None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            return error
        return None

    def _commit_in_thread(self, loop: asyncio.AbstractEventLoop, batch: _Batch) -> None:
        started = time.perf_counter()
        error = self._commit()
        self._disk = time.perf_counter() - started
        with contextlib.suppress(RuntimeError):  # the loop has been closed, so no caller waits any more
            loop.call_soon_threadsafe(self._finish_batch, batch, error)

    def _finish_batch(self, batch: _Batch, failure: sqlite3.Error | None) -> None:
        if failure is not None:
            self._failed(batch, failure)
            return
        self._log_moved = False
        self._committed(batch.transaction)
        self._deliver_results(deque(batch.done))
        self._next()

    def _deliver_results(self, done: deque[tuple[asyncio.Future[Any], Any, Failure[Exception] | None]]) -> None:
        """Pass the results to the callers, one caller per step of the event loop.

        `done` has the future of each caller with its result or error, and is emptied. The code of a caller that runs
        after its write may take longer than the write itself.
        """
        while done:
            future, result, error = done.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error.error())
            break
        if done:
            asyncio.get_running_loop().call_soon(self._deliver_results, done)

    def _failed(self, batch: _Batch, error: sqlite3.Error) -> None:
        """Roll the batch back. If the disk is full and has a reserve, run the batch again, else fail its writes."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")
        if self._space is not None and self._thread is not None:
            self._thread.submit(self._make_room_in_thread, asyncio.get_running_loop(), self._space, batch, error)
        else:
            self._fail_with(batch, error)

    def _fail_with(self, batch: _Batch, error: sqlite3.Error) -> None:
        log.error("the embedded store could not write: %s", error)
        self._fail(batch, Unavailable(f"the store could not write: {error}"))

    def _fail(self, batch: _Batch, error: Unavailable) -> None:
        for write in batch.writes:
            if not write.future.done():
                write.future.set_exception(type(error)(*error.args))
        self._next()

    def _make_room_in_thread(
        self, loop: asyncio.AbstractEventLoop, space: Space, batch: _Batch, error: sqlite3.Error
    ) -> None:
        """If the disk is full, move the log to the database, so that the next write overwrites it.

        If the disk is still full then, use the reserve. If `error` has another cause, fail the batch.
        """
        if not space.causes(error):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._fail_with, batch, error)
            return
        space.set_full()
        if self._checkpoint() and not self._log_moved:
            self._log_moved = more_space = True
        else:
            more_space = space.release()
            self._checkpoint()
        with contextlib.suppress(RuntimeError):  # the loop has been closed, so no caller waits any more
            loop.call_soon_threadsafe(self._run_again, batch, more_space)

    def _checkpoint(self) -> bool:
        """Move the log to the database. Return whether all of it was moved."""
        try:
            _, pages, moved = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            return False
        return bool(pages == moved)

    def _run_again(self, batch: _Batch, more_space: bool) -> None:
        self._filled()
        if more_space:
            self._pending.extendleft(reversed(batch.writes))
            self._next()
        else:
            self._fail(batch, NoSpace(FULL_TEXT))

    def _next(self) -> None:
        if self._thread is None:
            return
        if self._pending:
            asyncio.get_running_loop().call_soon(self._run_batch)
        else:
            self._busy = False
            self._idle.set()

    async def close(self) -> None:
        """Reject new writes, and wait until pending ones have been committed."""
        self._closed = True
        await self._idle.wait()
        if self._thread is not None:
            self._thread.shutdown()
