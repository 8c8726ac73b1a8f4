"""`tetrapod migrate`: from one store to another, a stock kube-apiserver's etcd among them. See docs/how-to/backup.md."""

from __future__ import annotations

from typing import Any

import click

from tetrapod.apps.stores import Store, done, side_of, side_options


@click.command()
@side_options("from", "Where objects are: a data directory of `up`, or etcd's URLs, comma-separated.")
@side_options("to", "Where they shall be: a new data directory, or the URLs of an etcd without objects.")
@click.option("--keep-encrypted", is_flag=True, help="Move encrypted values as they are, to be read with the same configuration.")
def migrate(keep_encrypted: bool, **values: Any) -> None:
    """Move all objects to another store. Stop every server of both before.

    The source stays as it is. Values that a stock kube-apiserver stored as protobuf become JSON, which it reads as well; encrypted ones are
    decrypted by the configuration of the source, and all are encrypted by that of the target.
    """
    source, target = side_of("from", values), side_of("to", values)
    if keep_encrypted and (source.encryption or target.encryption):
        raise click.UsageError("either --keep-encrypted, or --from-encryption-provider-config and --to-encryption-provider-config")
    count, revision = done(moved(source, target, keep_encrypted=keep_encrypted))
    click.echo(f"{count} objects moved from {source.place} to {target.place}, which is at revision {revision}")


async def moved(source: Store, target: Store, *, keep_encrypted: bool) -> tuple[int, int]:
    """How many objects, and the revision of the target. Raises BackupError: then the target must be emptied."""
    from tetrapod.generic.storage.backup.contents import BackupError
    from tetrapod.generic.storage.backup.converting import converted
    from tetrapod.generic.storage.sqlite.lock import DatabaseLock

    lock = DatabaseLock(source.database) if not source.is_etcd and source.database.exists() else None
    try:
        contents = await source.decrypted(await source.read(keys=not target.is_etcd))
        wanted = await target.encrypted(converted(contents, keep_encrypted=keep_encrypted))
        revision = await target.write(wanted)
        again = await source.read(keys=False)
        before, after = ({item.key: item.revision for item in found.items if item.ttl is None} for found in (contents, again))
        if before != after:
            raise BackupError("somebody wrote to the source meanwhile; stop its servers, empty the target, and begin again")
        return len(wanted.items), revision
    finally:
        if lock is not None:
            lock.release()
