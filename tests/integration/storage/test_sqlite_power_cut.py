"""The embedded store after a power cut or `kill -9` at each write and sync: acknowledged writes are there.

SQLite's file operations are recorded (chaos/disk), the possible disks after each are built, and the store is opened on
them. CHAOS_WRITES makes the test longer.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.disk.cuts import Disk, power_cuts
from chaos.disk.recording import Acknowledged, Recording, Sync, Write, can_record, recorded
from tetrapod.generic.storage.sqlite import SqliteBackend, schema

SEED = int(os.environ.get("CHAOS_SEED") or 5)
WRITES = int(os.environ.get("CHAOS_WRITES") or 40)
WRITERS = 4
PAGES = 12  # pages in the log before it is copied into the database: few, so that it happens often

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not can_record(), reason="Python's SQLite is not a shared library here"),
]


async def _writer(number: int, backend: SqliteBackend, recording: Recording, chance: random.Random) -> None:
    """Creates, updates and deletes its own keys, and records the acknowledgements."""
    known: dict[str, int] = {}
    for _ in range(WRITES // WRITERS):
        key = f"/w{number}/{chance.randrange(3)}"
        revision = known.pop(key, 0)
        value = chance.randbytes(chance.randrange(1, 3000)) if not revision or chance.random() < 0.7 else None
        if value is None:
            written = await backend.delete_if(key, revision)
        else:
            written = await backend.put_if(key, value, revision)
            known[key] = written.revision
        assert written.succeeded
        recording.steps.append(Acknowledged(key, written.revision, value))


async def _work(directory: Path, seed: int) -> Recording:
    chance = random.Random(seed)
    with recorded(directory) as recording:
        backend = SqliteBackend(directory / "db")
        await asyncio.gather(
            *(_writer(number, backend, recording, random.Random(chance.random())) for number in range(WRITERS))
        )
        await backend.compact(await backend.revision() // 2)
        await asyncio.gather(
            *(
                _writer(number + WRITERS, backend, recording, random.Random(chance.random()))
                for number in range(WRITERS)
            )
        )
        await backend.close()
    return recording


async def _found(disk: Disk, directory: Path) -> str:
    """Return the error of the store on such a disk, or ""."""
    disk.put_into(directory)
    backend = SqliteBackend(directory / "db")
    try:
        present = {kv.key: kv for kv in (await backend.range("/", "0")).kvs}
        last = await backend.revision()
    finally:
        await backend.close()
    connection = sqlite3.connect(directory / "db")
    try:
        intact = connection.execute("PRAGMA integrity_check").fetchone()[0]
        compacted = connection.execute("SELECT revision FROM compaction").fetchone()[0]
        rows = {row[0]: row[1:] for row in connection.execute("SELECT revision, key, value FROM revisions")}
    finally:
        connection.close()
    if intact != "ok":
        return str(intact)
    newest: dict[str, tuple[int, bytes | None]] = {}
    for revision, (key, value) in sorted(rows.items()):
        newest[key] = (revision, value)
    if {key: revision for key, (revision, value) in newest.items() if value is not None} != {
        k: kv.mod_revision for k, kv in present.items()
    }:
        return "the present state is not what history ends with"
    if missing := [
        revision
        for revision in range(compacted + 1, last + 1)
        if revision not in rows and revision > schema.FIRST_REVISION
    ]:
        return f"of the revisions to {last} there are no {missing}"
    for write in disk.acknowledged:
        if write.revision > compacted and rows.get(write.revision) != (write.key, write.value):
            return f"the acknowledged {write.key} at {write.revision} is lost"
    return ""


@pytest.fixture
def small_log(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """The log is copied back often, and each connection gets the settings `more`."""

    def install(more: str = "") -> None:
        prepare = schema.prepare

        def prepared(connection: sqlite3.Connection, path: Path | None) -> None:
            prepare(connection, path)
            connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")
            if more:
                connection.execute(more)

        monkeypatch.setattr("tetrapod.generic.storage.sqlite.backend.prepare", prepared)

    return install


async def _wrong(tmp_path: Path, most: int = 3) -> tuple[Recording, list[str]]:
    recording = await _work(tmp_path, SEED)
    wrong = []
    for number, disk in enumerate(power_cuts(recording.steps, random.Random(SEED))):
        if found := await _found(disk, tmp_path / f"disk{number}"):
            wrong.append(f"{disk.what}: {found}")
            if len(wrong) == most:
                break
    return recording, wrong


@pytest.mark.timeout(1800)
async def test_a_power_cut_at_any_write_loses_nothing_acknowledged(
    tmp_path: Path, small_log: Callable[..., None]
) -> None:
    small_log()
    recording, wrong = await _wrong(tmp_path)
    assert wrong == []
    kinds: list[tuple[type[Any], str]] = [
        (type(step), step.file) for step in recording.steps if isinstance(step, (Write, Sync))
    ]
    for what in ((Write, "db-wal"), (Sync, "db-wal"), (Write, "db"), (Sync, "db")):  # the test did examine a database
        assert kinds.count(what) >= 3, what
    assert sum(isinstance(step, Acknowledged) for step in recording.steps) == 2 * (WRITES // WRITERS) * WRITERS


async def test_recorded_databases_keep_their_files_in_their_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working, databases = tmp_path / "working", tmp_path / "databases"
    working.mkdir()
    databases.mkdir()
    monkeypatch.chdir(working)
    with recorded(databases):
        backend = SqliteBackend(databases / "db")
        for number in range(100):
            await backend.put_if(f"/{number}", b"x" * number, 0)
        files = sorted(file.name for file in databases.iterdir())
        await backend.close()
    assert [file.name for file in working.iterdir()] == []
    assert "db-shm" in files


@pytest.mark.parametrize("careless", ["PRAGMA synchronous = NORMAL", "PRAGMA synchronous = OFF"])
async def test_the_power_cut_test_detects_a_store_that_does_not_sync(
    tmp_path: Path, small_log: Callable[..., None], careless: str
) -> None:
    small_log(careless)
    _, wrong = await _wrong(tmp_path, most=1)
    assert wrong
