"""`SqliteBackend`: etcd's semantics over one SQLite file, for one process.

`tetrapod up` uses it, and tests use it in memory.

Writes go through the group commit of `writer.py`. Reads use separate connections, which see the last commit (WAL).
Ranges are read in a thread, single keys on the event loop. Watches are fed within the process. A lock file excludes
other processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.storage.backend import BackendEvent, CannotOpen, KeyValue, Range, RequestTooLarge, WriteResult
from tetrapod.generic.storage.sqlite import reading, snapshots
from tetrapod.generic.storage.sqlite.housekeeping import Housekeeping
from tetrapod.generic.storage.sqlite.lock import DatabaseLock
from tetrapod.generic.storage.sqlite.schema import MEMORY, open_connection, prepare, tune
from tetrapod.generic.storage.sqlite.space import Space
from tetrapod.generic.storage.sqlite.transaction import Transaction
from tetrapod.generic.storage.sqlite.watching import SqliteWatch, WatchHub
from tetrapod.generic.storage.sqlite.writer import Writer

T = TypeVar("T")
HISTORY_CHUNK = 1000  # events
HISTORY_SECONDS = 300.0  # as upstream's compaction interval
LARGEST_REQUEST = 1536 * 1024  # etcd's --max-request-bytes, so that both backends reject the same requests


class SqliteBackend:
    """The implementation of `Backend` over SQLite.

    Its timers, for expired leases and old history, start with the first call.
    """

    def __init__(
        self,
        path: str | Path = MEMORY,
        *,
        history_seconds: float = HISTORY_SECONDS,
        durable: bool = True,
        template: sqlite3.Connection | None = None,
    ) -> None:
        """Open or create the database at `path`.

        Args:
            path: the file, or `MEMORY`.
            history_seconds: for how many seconds past revisions are kept at least.
            durable: sync every commit to disk. If False, a power failure may corrupt the database.
            template: a connection to a database whose contents replace those of the new one; None starts with an empty
                one.

        Raises:
            DatabaseInUse: another process has the database open.
            UnsupportedDatabase: the file is not a database of this version of Tetrapod.
            CannotOpen: SQLite cannot open or write the file.
            OSError: the lock file cannot be created.
        """
        self._durable = durable
        self._template = template
        self._path = None if str(path) == MEMORY else Path(path).absolute()
        self._lock = None if self._path is None else DatabaseLock(self._path)
        try:
            self._space = Space(self._path) if self._path is not None and durable else None
            self._open()
        except sqlite3.Error as error:
            if self._lock is not None:
                self._lock.release()
            raise CannotOpen(f"the database {path} cannot be opened: {error}") from error
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise
        self._observed = self._hub.revision
        self._housekeeping = Housekeeping(self._writer, lambda: self._hub.revision, history_seconds, space=self._space)
        self._started = False
        self._closed = False

    def _open(self) -> None:
        """Open the connections. On a full disk the log and its index need space of the reserve for that."""
        while True:
            try:
                self._open_connections()
                break
            except sqlite3.Error as error:
                if self._space is None or not self._space.causes(error) or not self._space.release():
                    raise
        self._for_writes, self._for_keys, self._for_ranges = (
            self._connections[0],
            self._connections[-1],
            self._connections[len(self._connections) // 2],
        )
        self._reader = None if self._path is None else ThreadPoolExecutor(1, "tetrapod-sqlite-read")
        self._hub = WatchHub(reading.last_revision(self._for_writes), self._read_history)
        self._writer = Writer(
            self._for_writes,
            self._begin,
            self._committed,
            threaded=self._path is not None,
            space=self._space,
            filled=self._filled,
        )

    def _open_connections(self) -> None:
        name = MEMORY if self._path is None else str(self._path)
        self._connections = [open_connection(name)]
        try:
            if self._template is not None:
                self._template.backup(self._connections[0])
            prepare(self._connections[0], self._path)
            if self._path is not None:
                self._connections += [open_connection(name), open_connection(name)]
            for connection in self._connections:
                tune(connection, self._durable)
        except BaseException:
            self._close_connections()
            raise

    # Reads

    @traced("sqlite get", detailed=True)
    async def get(self, key: str) -> KeyValue | None:
        self._use()
        try:
            kv = reading.get(self._for_keys, key)
        except UnicodeEncodeError:  # path bytes that are not UTF-8: no object can have such a name
            return None
        except sqlite3.Error as error:
            raise Unavailable(f"the store could not read: {error}") from error
        if kv is not None:
            self._observed = max(self._observed, kv.mod_revision)
        return kv

    @traced("sqlite range", detailed=True)
    async def range(
        self,
        start: str,
        end: str,
        *,
        limit: int = 0,
        revision: int = 0,
        keys_only: bool = False,
        count_only: bool = False,
        counted: bool = True,
    ) -> Range:
        query = reading.RangeQuery(start, end, limit, revision, keys_only, count_only, counted)
        result = await self._read(lambda connection: reading.read_range(connection, query), at_once=end == start + "\0")
        self._observed = max(self._observed, result.revision)
        return result

    async def revision(self) -> int:
        """Return the current revision.

        It is at least the revision of every earlier read, even if watches have not been notified of that commit yet.
        """
        self._use()
        return max(self._hub.revision, self._observed)

    async def size(self) -> int:
        return await self._read(
            lambda connection: int(
                connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[
                    0
                ]
            )
        )

    async def history(self, start: str, end: str, first: int, last: int) -> AsyncGenerator[list[BackendEvent], None]:
        while first <= last:
            events = await self._read_history((start, end), first, last, HISTORY_CHUNK)
            yield events
            first = events[-1].revision + 1 if len(events) == HISTORY_CHUNK else last + 1

    async def _read_history(self, span: tuple[str, str], first: int, last: int, limit: int) -> list[BackendEvent]:
        return await self._read(lambda connection: reading.history(connection, span, first, last, limit))

    async def _read(self, work: Callable[[sqlite3.Connection], T], *, at_once: bool = False) -> T:
        """Run `work` in one read transaction and return its result.

        Args:
            work: reads from the connection with which it is called.
            at_once: read on the event loop instead of in a thread. Meant for single keys, which take less time than
                handing work to a thread.

        Raises:
            Unavailable: SQLite reported an error. Errors of `work` are passed on.
        """
        self._use()
        if at_once or self._reader is None:
            return self._in_snapshot(self._for_keys, work)
        return await asyncio.get_running_loop().run_in_executor(self._reader, self._in_snapshot, self._for_ranges, work)

    @staticmethod
    def _in_snapshot(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise Unavailable(f"the store could not read: {error}") from error

    # Writes

    @traced("sqlite put", lambda self, key, value, *_, **__: {"bytes": len(value)}, detailed=True)
    async def put_if(
        self, key: str, value: bytes, expected: int, *, lease: int = 0, deleting: bool = False
    ) -> WriteResult:
        self._use()
        if len(key) + len(value) > LARGEST_REQUEST:
            raise RequestTooLarge
        return await self._writer.submit(
            lambda transaction: transaction.put(key, value, expected, lease), deleting=deleting
        )

    @traced("sqlite delete", detailed=True)
    async def delete_if(self, key: str, expected: int) -> WriteResult:
        self._use()
        return await self._writer.submit(lambda transaction: transaction.delete(key, expected), deleting=True)

    async def grant_lease(self, ttl: int) -> int:
        self._use()
        expires = self._housekeeping.clock() + ttl
        lease = await self._writer.submit(lambda transaction: transaction.grant(expires))
        self._housekeeping.schedule_expiry(expires)
        return lease

    async def compact(self, revision: int) -> None:
        self._use()
        await self._housekeeping.compact(revision)

    async def snapshot(self) -> snapshots.Snapshot:
        """Return the current contents, without history, for `restore`.

        Raises:
            Unavailable: SQLite reported an error.
        """
        now = self._housekeeping.clock()
        return await self._read(lambda connection: snapshots.take(connection, now))

    async def restore(self, snapshot: snapshots.Snapshot) -> int:
        """Make the store hold the contents of a snapshot, by one write transaction with new revisions.

        Return the number of keys that were put or deleted, because they differed.

        Raises:
            Unavailable: the store is closed or could not write.
        """
        self._use()
        now = self._housekeeping.clock()
        changed, next_expiry = await self._writer.submit(
            lambda t: snapshots.restore(t, self._for_writes, snapshot, now)
        )
        if next_expiry is not None:
            self._housekeeping.schedule_expiry(next_expiry)
        return changed

    async def copy(self) -> SqliteBackend:
        """Return a copy of this store in memory, including history, revisions and leases."""
        self._use()
        return SqliteBackend(template=self._for_keys)

    def _begin(self) -> Transaction:
        return Transaction(self._for_writes, self._hub.revision, self._hub.wants_previous)

    def _committed(self, transaction: Transaction) -> None:
        if transaction.events:
            self._hub.publish(transaction.events, transaction.revision)

    def _filled(self) -> None:
        self._housekeeping.reclaim()

    # Watches

    @contextlib.asynccontextmanager
    async def watch(
        self, start: str, end: str, from_revision: int, *, previous: bool = True
    ) -> AsyncIterator[SqliteWatch]:
        self._use()
        watch = self._hub.add((start, end), from_revision, previous)
        try:
            yield watch
        finally:
            self._hub.remove(watch)

    @property
    def progress_reliable(self) -> bool:
        return True

    # Start and shutdown

    def _use(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")
        if not self._started:
            self._started = True
            row = self._for_keys.execute("SELECT min(expires) FROM leases").fetchone()
            self._housekeeping.start(row[0])

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._hub.close()
        await self._housekeeping.close()
        await self._writer.close()
        if self._reader is not None:
            self._reader.shutdown()
        self._close_connections()
        if self._lock is not None:
            self._lock.release()

    def _close_connections(self) -> None:
        for connection in reversed(self._connections):
            connection.close()
