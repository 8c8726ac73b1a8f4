"""Backups: of one revision, verified, and restored so that clients of the source do not see revisions repeated."""

from __future__ import annotations

import asyncio
import gzip
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from integration.backup.conftest import filled
from support.etcd import Etcd
from tetrapod.generic.storage.backend import Compacted, prefix_end
from tetrapod.generic.storage.backup import archive
from tetrapod.generic.storage.backup.contents import BackupError, Contents, Item
from tetrapod.generic.storage.backup.reading import read_etcd, read_sqlite
from tetrapod.generic.storage.backup.writing import write_etcd, write_sqlite
from tetrapod.generic.storage.etcd.backend import EtcdBackend
from tetrapod.generic.storage.sqlite import SqliteBackend

Command = Callable[..., Result]


def embedded(directory: Path, prefix: str = "/registry") -> int:
    """Create a data directory; return the revision of its database."""

    async def make() -> int:
        backend = SqliteBackend(directory / "tetrapod.db")
        try:
            await filled(backend, prefix)
            return await backend.revision()
        finally:
            await backend.close()

    (directory / "pki").mkdir(parents=True)
    (directory / "pki" / "sa.key").write_text("private")
    (directory / "pki" / "ca.crt").write_text("public")
    return asyncio.run(make())


def test_a_data_directory_is_backed_up_verified_and_restored(tmp_path: Path, tetrapod: Command) -> None:
    revision = embedded(tmp_path / "old")
    file = tmp_path / "backup"
    done = tetrapod("backup", "--data-dir", tmp_path / "old", "--out", file)
    assert done.exit_code == 0, done.output
    assert f"701 objects at revision {revision}" in done.output
    assert "1 are encrypted" in done.output
    assert file.stat().st_mode & 0o777 == 0o600
    assert tetrapod("backup", "--verify", file).output == done.output
    done = tetrapod("restore", file, "--data-dir", tmp_path / "new")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "new/pki/sa.key").read_text() == "private"
    assert (tmp_path / "new/pki/sa.key").stat().st_mode & 0o777 == 0o600
    asyncio.run(_restored(tmp_path / "new/tetrapod.db", revision))
    databases = [*tmp_path.glob("*/tetrapod.db*")]
    assert {path.parent.name for path in databases} == {"old", "new"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in databases), databases


def test_a_backup_is_decrypted_and_restored_with_encryption(tmp_path: Path, tetrapod: Command) -> None:
    secret = b'{"kind":"Secret","data":{"p":"cQ=="}}'

    def plain(directory: str) -> Contents:
        return read_sqlite(tmp_path / directory / "tetrapod.db", "/registry", "embedded")

    async def fill() -> None:
        backend = SqliteBackend(tmp_path / "plain" / "tetrapod.db")
        await backend.put_if("/registry/secrets/default/s", secret, 0)
        await backend.put_if("/registry/masterleases/10.0.0.1", b"{}", 0)  # a key that belongs to no resource
        await backend.close()

    key = b64encode(b"k" * 32).decode()
    config = tmp_path / "encryption.yaml"
    config.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
        f"- {{resources: ['*.*'], providers: [aesgcm: {{keys: [{{name: k, secret: {key}}}]}}]}}\n"
    )
    (tmp_path / "plain").mkdir()
    asyncio.run(fill())
    flag = ("--encryption-provider-config", config)
    assert tetrapod("backup", "--data-dir", tmp_path / "plain", "-o", tmp_path / "a").exit_code == 0
    done = tetrapod("restore", tmp_path / "a", "--data-dir", tmp_path / "sealed", *flag)
    assert done.exit_code == 0, done.output
    assert [(item.key, item.value[:20]) for item in plain("sealed").items] == [
        ("masterleases/10.0.0.1", b"{}"),
        ("secrets/default/s", b"k8s:enc:aesgcm:v1:k:"),
    ]
    assert "1 are encrypted" in tetrapod("backup", "--data-dir", tmp_path / "sealed", "-o", tmp_path / "b").output
    opened = tetrapod("backup", "--data-dir", tmp_path / "sealed", "-o", tmp_path / "c", *flag)
    assert (opened.exit_code, "encrypted" in opened.output) == (0, False)
    assert tetrapod("restore", tmp_path / "c", "--data-dir", tmp_path / "again").exit_code == 0
    assert plain("again").digest() == plain("plain").digest()
    # Encrypted values of a backup are decrypted, and encrypted again for their new key in the store.
    etcd_like = ("--etcd-prefix", "/elsewhere")
    moved = tetrapod("restore", tmp_path / "b", "--data-dir", tmp_path / "other", *flag, *etcd_like)
    assert (moved.exit_code, "cannot be decrypted by" in moved.output) == (1, True), (
        "AES-GCM binds values to /registry/…"
    )


async def _restored(database: Path, before: int) -> None:
    backend = SqliteBackend(database)
    try:
        found = await backend.get("/registry/configmaps/default/c000")
        assert found is not None
        assert (found.value, found.mod_revision) == (b'{"kind":"ConfigMap","data":{"n":"new"}}', before - 3)
        assert await backend.get("/registry/configmaps/default/c699") is None
        event = await backend.get("/registry/events/default/e")
        assert event is not None
        assert event.lease
        now = await backend.revision()
        assert now > before
        with pytest.raises(Compacted):  # a watch from before the restoration would miss the lost changes
            async with backend.watch("/registry/", "/registry0", before) as watch:
                await anext(aiter(watch))
        written = await backend.put_if("/registry/configmaps/default/next", b"{}", 0)
        assert written.revision == now + 1
    finally:
        await backend.close()


def test_a_database_is_backed_up_while_it_is_written(tmp_path: Path, tetrapod: Command) -> None:
    async def work() -> None:
        backend = SqliteBackend(tmp_path / "tetrapod.db")
        try:
            await filled(backend, "/registry")
            stop = asyncio.Event()

            async def write() -> None:
                number = 0
                while not stop.is_set():
                    number += 1
                    # the order is fixed, so a backup with more of b than of a would not be of one revision
                    for key in ("a", "b"):
                        await backend.put_if(f"/registry/pods/{key}/{number:06}", b"{}", 0)

            writing = asyncio.create_task(write())
            for _ in range(5):
                done = await asyncio.to_thread(
                    tetrapod, "backup", "--data-dir", tmp_path, "--out", tmp_path / "backup", "--without-keys"
                )
                assert done.exit_code == 0, done.output
                contents, _ = archive.read(tmp_path / "backup")
                of_a, of_b = (sum(item.key.startswith(f"pods/{key}/") for item in contents.items) for key in ("a", "b"))
                assert of_b <= of_a <= of_b + 1
                assert max(item.revision for item in contents.items) <= contents.revision
            stop.set()
            await writing
        finally:
            await backend.close()

    asyncio.run(work())


@pytest.mark.parametrize("damage", ["cut", "changed", "shortened", "foreign", "newer", "missing", "mistyped"])
def test_an_incomplete_file_is_rejected(tmp_path: Path, tetrapod: Command, damage: str) -> None:
    file = tmp_path / "backup"
    archive.write(file, Contents("embedded", 9, [Item(f"pods/a/{n}", b'{"n":%d}' % n, n + 2, n + 2) for n in range(5)]))
    data = file.read_bytes()
    lines = gzip.decompress(data).splitlines(keepends=True)
    damaged = {
        "cut": data[:-20],
        "changed": gzip.compress(b"".join(lines).replace(b'{\\"n\\":3}', b'{\\"n\\":4}')),
        "shortened": gzip.compress(b"".join(lines[:-2])),
        "foreign": b"nothing of ours",
        "newer": gzip.compress(b"".join(lines).replace(b'"version":1', b'"version":2')),
        "missing": gzip.compress(b"".join(lines[:3] + lines[4:])),
        "mistyped": gzip.compress(b"".join(lines).replace(b'"{\\"n\\":3}"', b"3")),
    }[damage]
    assert damaged != data
    file.write_bytes(damaged)
    for command in (["backup", "--verify", file], ["restore", file, "--data-dir", tmp_path / "new"]):
        done = tetrapod(*command)
        assert done.exit_code == 1
        assert str(file) in done.output
    assert not (tmp_path / "new").exists()


def test_existing_data_is_not_overwritten(tmp_path: Path, tetrapod: Command, etcd: Etcd, prefix: str) -> None:
    embedded(tmp_path / "old")
    file = tmp_path / "backup"
    assert tetrapod("backup", "--data-dir", tmp_path / "old", "--out", file).exit_code == 0
    done = tetrapod("restore", file, "--data-dir", tmp_path / "old")
    assert (done.exit_code, "has certificates already" in done.output) == (1, True)
    done = tetrapod("restore", file, "--data-dir", tmp_path / "old", "--without-keys")
    assert (done.exit_code, "exists already" in done.output) == (1, True)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "tetrapod.db").touch()
    assert tetrapod("restore", file, "--data-dir", tmp_path / "half").exit_code == 1
    assert not (tmp_path / "half" / "pki").exists()
    place = ("--etcd-servers", etcd.url, "--etcd-prefix", prefix)
    assert tetrapod("restore", file, *place).exit_code == 0
    done = tetrapod("restore", file, *place)
    assert (done.exit_code, f"701 keys below {prefix}/ already" in done.output) == (1, True)
    done = tetrapod("backup", "--data-dir", tmp_path / "nowhere", "--out", file)
    assert (done.exit_code, "no such database" in done.output) == (1, True)


def test_etcd_is_backed_up_at_one_revision_and_restored_above_it(
    tmp_path: Path, tetrapod: Command, etcd: Etcd, prefix: str
) -> None:
    async def fill() -> int:
        backend = EtcdBackend([etcd.url])
        try:
            await filled(backend, prefix)
            return await backend.revision()
        finally:
            await backend.close()

    before = asyncio.run(fill())
    file = tmp_path / "backup"
    assert tetrapod("backup", "--etcd-servers", etcd.url, "--etcd-prefix", prefix, "--out", file).exit_code == 0
    contents, summary = archive.read(file)
    assert (summary.objects, summary.revision, summary.files) == (701, before, 0)
    assert [item.key for item in contents.items if item.ttl is not None] == ["events/default/e"]
    assert tetrapod("restore", file, "--etcd-servers", etcd.url, "--etcd-prefix", f"{prefix}-new").exit_code == 0

    async def check() -> None:
        backend = EtcdBackend([etcd.url])
        try:
            found = await read_etcd(backend, f"{prefix}-new", "etcd")
            assert found.digest() == contents.digest()
            assert min(item.revision for item in found.items) > before
            ttl = next(item.ttl for item in found.items if item.ttl is not None)
            assert 900 < ttl <= 1000
        finally:
            await backend.close()

    asyncio.run(check())


async def test_the_revision_of_etcd_is_raised_to_that_of_the_source(etcd: Etcd, prefix: str) -> None:
    backend = EtcdBackend([etcd.url])
    try:
        goal = await backend.revision() + 5000
        revision = await write_etcd(backend, prefix, Contents("embedded", goal, [Item("pods/a/b", b"{}", goal, goal)]))
        found = await backend.get(f"{prefix}/pods/a/b")
        assert found is not None
        assert found.mod_revision > goal
        with pytest.raises(Compacted):
            async with backend.watch(prefix, prefix_end(prefix), revision - 1) as watch:
                await anext(aiter(watch))
        assert (await backend.range("tetrapod/", "tetrapod0", count_only=True)).total == 0
        with pytest.raises(BackupError, match="bump-revision"):
            await write_etcd(backend, f"{prefix}x", Contents("embedded", 1 << 50, []))
    finally:
        await backend.close()


async def test_an_object_that_etcd_does_not_accept_is_named(etcd: Etcd, prefix: str) -> None:
    backend = EtcdBackend([etcd.url])
    try:
        with pytest.raises(BackupError, match="pods/a/large is larger"):
            await write_etcd(backend, prefix, Contents("embedded", 1, [Item("pods/a/large", b"x" * (2 << 20), 1, 1)]))
    finally:
        await backend.close()


def test_a_database_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    """SQLite opens no file whose path has more than 512 characters."""
    database = tmp_path.joinpath(*["d" * 200] * 3, "tetrapod.db")
    with pytest.raises(BackupError, match="cannot be written: unable to open"):
        write_sqlite(database, "/registry", Contents("embedded", 1, []))
    database.write_bytes(b"")
    with pytest.raises(BackupError, match="cannot be read: unable to open"):
        read_sqlite(database, "/registry", "embedded")
