"""`tetrapod backup` and `tetrapod restore`: all objects at one revision, in a file that can be verified. See docs/how-to/backup.md."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from tetrapod.apps.stores import Store, done, store_options


@click.command()
@click.option("--out", "-o", type=click.Path(path_type=Path, dir_okay=False), help="The file to write.")
@click.option("--without-keys", is_flag=True, help="Leave certificates and keys of the data directory out.")
@click.option("--verify", type=click.Path(path_type=Path, dir_okay=False), help="Write nothing: read this file, and say what it has.")
@store_options
def backup(store: Store, out: Path | None, without_keys: bool, verify: Path | None) -> None:
    """Write all that a store holds, at one revision, to a file. The server may run on.

    A backup of a data directory has its certificates and the key of service accounts, unless --without-keys; one of an etcd has none.
    Encrypted values stay so, unless --encryption-provider-config says how to decrypt them: then whoever has the backup can read them.
    """
    from tetrapod.generic.storage.backup import archive

    async def summary(path: Path) -> archive.Summary:
        return archive.read(path)[1]

    async def work(path: Path) -> None:
        archive.write(path, await store.decrypted(await store.read(keys=not without_keys)))

    if (out is None) == (verify is None):
        raise click.UsageError("either --out FILE or --verify FILE")
    if out is not None:
        done(work(out))
    path = out or verify
    assert path is not None
    found: archive.Summary = done(summary(path))
    click.echo(
        f"{path}: {found.objects} objects at revision {found.revision}, of {found.taken} ({found.source}, Kubernetes {found.kubernetes})"
    )
    if found.files:
        click.echo(f"  with {found.files} files of certificates and keys: keep it secret")
    if found.encrypted:
        click.echo(f"  {found.encrypted} are encrypted, and of use only with the keys of their --encryption-provider-config")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--without-keys", is_flag=True, help="Leave the certificates and keys of the backup out.")
@store_options
def restore(store: Store, file: Path, without_keys: bool) -> None:
    """Write a backup into a store that is empty: a new data directory, or an etcd without objects. No server may run on it.

    With --encryption-provider-config all is encrypted anew, as the server will do it; that must open what is encrypted in the backup.
    """
    from tetrapod.generic.storage.backup import archive

    async def work() -> tuple[int, int]:
        contents, _ = archive.read(file)
        if store.is_etcd or without_keys:
            contents = replace(contents, files={})
        return len(contents.items), await store.write(await store.encrypted(contents))

    count, revision = done(work())
    click.echo(f"{count} objects restored into {store.place}, which is at revision {revision}")
