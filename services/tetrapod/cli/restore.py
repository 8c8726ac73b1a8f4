"""`tetrapod restore`: write a backup into an empty store. See docs/how-to/backup.md."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from tetrapod.apps.stores import Store
from tetrapod.cli.store_options import run_to_completion, store_options


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--without-keys", is_flag=True, help="Exclude the certificates and keys of the backup.")
@store_options
def restore(store: Store, file: Path, without_keys: bool) -> None:
    """Write a backup into an empty store.

    The store is a new data directory, or an etcd without objects. No server may run on it.

    With --encryption-provider-config all objects are encrypted as the server will do it. Values that are encrypted in
    the backup are decrypted with the same configuration.
    """
    from tetrapod.generic.storage.backup import archive

    async def write() -> tuple[int, int]:
        contents, _ = archive.read(file)
        if store.is_etcd or without_keys:
            contents = replace(contents, files={})
        return len(contents.items), await store.write(await store.encrypted(contents))

    count, revision = run_to_completion(write())
    click.echo(f"{count} objects restored into {store.place}, which is at revision {revision}")
