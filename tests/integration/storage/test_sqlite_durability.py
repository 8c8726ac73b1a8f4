"""The file of the embedded store: acknowledged writes survive a kill, one process at a time may open it, and foreign
files are rejected.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.server import SERVICES
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.backend import CannotOpen
from tetrapod.generic.storage.sqlite import DatabaseInUse, SqliteBackend, UnsupportedDatabase


def writer(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("sqlite_writer.py")), str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(SERVICES)})


async def test_every_acknowledged_write_survives_kill_9(tmp_path: Path) -> None:
    for attempt in range(3):
        path = tmp_path / f"db{attempt}"
        process = writer(path)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(300)]
        process.kill()
        lines += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        acknowledged = {key: int(revision) for key, revision in (line.split() for line in lines if line.endswith("\n"))}
        backend = SqliteBackend(path)
        found = {kv.key: kv.mod_revision for kv in (await backend.range("/", "0")).kvs}
        assert acknowledged.items() <= found.items()
        assert await backend.revision() == max(found.values())
        await backend.close()


async def test_a_second_process_is_rejected_with_the_owner_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "db"
    process = writer(path)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        with pytest.raises(
            DatabaseInUse, match=f"in use by process {process.pid}; only one process can serve it at a time"
        ):
            SqliteBackend(path)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    backend = SqliteBackend(path)  # the lock was released with its holder
    with pytest.raises(DatabaseInUse):
        SqliteBackend(path)
    await backend.close()
    await SqliteBackend(path).close()


async def test_an_existing_database_opens_at_once(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "db")
    await asyncio.gather(*(backend.put_if(f"/{number}", b"x" * 3000, 0) for number in range(3000)))
    await backend.close()
    fastest = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        backend = SqliteBackend(tmp_path / "db")
        fastest = min(fastest, time.perf_counter() - begin)
        await backend.close()
    assert fastest < 0.05


async def test_leases_outlive_the_process(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "db")
    lease = await backend.grant_lease(1)
    await backend.put_if("/event", b"x", 0, lease=lease)
    await backend.close()
    backend = SqliteBackend(tmp_path / "db")
    async with backend.watch("/", "0", await backend.revision() + 1) as watch:
        events = (await asyncio.wait_for(anext(watch), 10)).events
        assert [(event.key, event.value) for event in events] == [("/event", None)]
    await backend.close()


async def test_old_history_is_forgotten_by_itself(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "db", history_seconds=0.05)
    revision = (await backend.put_if("/a", b"0", 0)).revision
    connection = sqlite3.connect(tmp_path / "db")

    def kept() -> int:
        return int(connection.execute("SELECT count(*) FROM revisions").fetchone()[0])

    for number in range(100):
        revision = (await backend.put_if("/a", b"%d" % number, revision)).revision
    async with asyncio.timeout(20):
        while kept() > 1:
            await backend.put_if("/b", b"x", 1)  # fails; lets the timers run
            await asyncio.sleep(0.01)
    connection.close()
    found = await backend.get("/a")
    assert found is not None and found.value == b"99"
    await backend.close()


async def test_files_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text"
    content = b"this is not a database, it is a text file that is long enough to be looked at as one" * 20
    text.write_bytes(content)
    with pytest.raises(UnsupportedDatabase, match="cannot be opened as a database: file is not a database"):
        SqliteBackend(text)
    assert text.read_bytes() == content
    foreign = tmp_path / "foreign"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(UnsupportedDatabase, match="not one of Tetrapod's"):
        SqliteBackend(foreign)
    newer = tmp_path / "newer"
    await SqliteBackend(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(UnsupportedDatabase, match="has schema version 99; this Tetrapod knows version 1"):
        SqliteBackend(newer)


async def test_a_database_that_sqlite_cannot_open_is_rejected_and_unlocked(tmp_path: Path) -> None:
    """SQLite opens no file whose path has more than 512 characters."""
    directory = tmp_path.joinpath(*["d" * 200] * 3)
    directory.mkdir(parents=True)
    for _ in range(2):  # the second attempt finds the lock released
        with pytest.raises(CannotOpen, match="cannot be opened: unable to open database file"):
            SqliteBackend(directory / "tetrapod.db")


async def test_a_closed_store_is_unavailable(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "db")
    async with backend.watch("/", "0", 0) as watch:
        waiting = asyncio.create_task(anext(watch))
        await asyncio.sleep(0)
        await backend.close()
        with pytest.raises(Unavailable):
            await waiting
    for call in (backend.get("/a"), backend.put_if("/a", b"", 0), backend.range("/", "0"), backend.revision()):
        with pytest.raises(Unavailable):
            await call
    await backend.close()


async def test_writes_under_way_are_finished_when_the_store_is_closed(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "db")
    writes = [asyncio.create_task(backend.put_if(f"/{number}", b"x", 0)) for number in range(500)]
    await asyncio.sleep(0)
    await backend.close()
    assert all(result.succeeded for result in await asyncio.gather(*writes))
    backend = SqliteBackend(tmp_path / "db")
    assert (await backend.range("/", "0", count_only=True)).total == 500
    await backend.close()


async def test_an_unread_watch_falls_back_to_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tetrapod.generic.storage.sqlite.watching.QUEUE", 10)
    backend = SqliteBackend()
    async with backend.watch("/", "0", 0) as watch:
        revisions = [(await backend.put_if(f"/{number}", b"x", 0)).revision for number in range(100)]
        seen: list[int] = []
        while len(seen) < 100:
            seen += [event.revision for event in (await asyncio.wait_for(anext(watch), 10)).events]
    assert seen == revisions
    await backend.close()
