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
from typing import Any, TypeVar

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.sqlite.transaction import Transaction
from tetrapod.machinery.failure import Failure

log = logging.getLogger(__name__)

T = TypeVar("T")
Operation = Callable[[Transaction], Any]
BATCH = 256
"""Maximum number of writes in one transaction."""
SLICE_SECONDS = 0.0005
"""Maximum time that the statements of a batch occupy the event loop in one step."""
DISK_SHARE = 0.25
"""A batch accepts operations until they have taken this share of the duration of the last commit, and for at least one
slice.
"""


class _Batch:
    """Writes that share a transaction.

    - `futures` are those of the callers whose writes are in the batch.
    - `done` holds each caller's future with its result, or with the error of its own operation.
    - `seconds` is the time that the operations have taken.
    """

    __slots__ = ("done", "futures", "seconds", "transaction")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.futures: list[asyncio.Future[Any]] = []
        self.done: list[tuple[asyncio.Future[Any], Any, Failure[Exception] | None]] = []
        self.seconds = 0.0

    def run(self, operation: Operation, future: asyncio.Future[Any]) -> None:
        """Run one operation and record its result or error in `done`; skip it if its caller was cancelled.

        `future` is that of the caller. It is not completed here, because the commit comes first.

        Raises:
            sqlite3.Error: the database failed, which fails the whole batch.
        """
        if future.cancelled():
            return
        self.futures.append(future)
        try:
            self.done.append((future, operation(self.transaction), None))
        except sqlite3.Error:
            raise
        except Exception as error:
            self.done.append((future, None, Failure(error)))


class Writer:
    """The writer of one database, which runs write operations in batches that share a transaction.

    Args:
        connection: the connection on which the transactions run; no other task may use it.
        begin: creates the next transaction.
        committed: called with the transaction after each commit, before the callers of `submit` get their results.
        threaded: commit in a thread, for a database on disk.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        begin: Callable[[], Transaction],
        committed: Callable[[Transaction], None],
        *,
        threaded: bool,
    ) -> None:
        self._connection = connection
        self._begin = begin
        self._committed = committed
        self._pending: deque[tuple[Operation, asyncio.Future[Any]]] = deque()
        self._thread = ThreadPoolExecutor(1, "tetrapod-sqlite-commit") if threaded else None
        self._busy = False
        self._disk = 0.0  # seconds that the last commit took
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def submit(self, operation: Callable[[Transaction], T]) -> T:
        """Run `operation` in a transaction shared with others, and return its result once the transaction is on disk.

        An operation may raise an error only before it writes anything; the error is passed on to the caller.

        Raises:
            Unavailable: the store is closed or could not write.
        """
        if self._closed:
            raise Unavailable("the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._pending.append((operation, future))
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
            self._failed([], error)
        else:
            self._fill(batch)

    def _fill(self, batch: _Batch) -> None:
        """Run pending operations in the batch's transaction for `SLICE_SECONDS`, then commit it.

        If more operations are pending, it continues in the loop's next step instead. It commits at the latest when the
        batch has taken a share (`DISK_SHARE`) of the time of the last commit: after a slow commit, syncing a larger
        batch is more efficient. An error of SQLite fails all operations of the batch.
        """
        started = now = time.perf_counter()
        try:
            while self._pending and len(batch.futures) < BATCH and now - started < SLICE_SECONDS:
                batch.run(*self._pending.popleft())
                now = time.perf_counter()
        except sqlite3.Error as error:
            self._failed(batch.futures, error)
            return
        batch.seconds += now - started
        loop = asyncio.get_running_loop()
        if self._thread is None or not batch.transaction.changed:
            self._finish_batch(batch, self._commit())
        elif self._pending and len(batch.futures) < BATCH and batch.seconds < self._disk * DISK_SHARE:
            loop.call_soon(self._fill, batch)
        else:
            self._thread.submit(self._commit_in_thread, loop, batch)

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
            self._failed(batch.futures, failure)
            return
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

    def _failed(self, futures: list[asyncio.Future[Any]], error: sqlite3.Error) -> None:
        log.error("the embedded store could not write: %s", error)
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")
        for future in futures:
            if not future.done():
                future.set_exception(Unavailable(f"the store could not write: {error}"))
        self._next()

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
