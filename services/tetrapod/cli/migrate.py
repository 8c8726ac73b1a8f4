"""`tetrapod migrate`: move all objects to another store, also from and to the etcd of a kube-apiserver.

See docs/how-to/backup.md.
"""

from __future__ import annotations

from typing import Any

import click

from tetrapod.apps.stores import Store
from tetrapod.cli.store_options import endpoint_options, run_to_completion, store_of


@click.command()
@endpoint_options("from", "The source: a data directory of `tetrapod up`, or the URLs of an etcd, comma-separated.")
@endpoint_options("to", "The target: a new data directory, or the URLs of an etcd without objects.")
@click.option(
    "--keep-encrypted", is_flag=True, help="Move encrypted values unchanged; the target needs the same configuration."
)
def migrate(keep_encrypted: bool, **values: Any) -> None:
    """Move all objects to another store. Stop all servers of both stores before.

    The source is not changed. Values in protobuf or YAML become JSON, which kube-apiserver can read too.
    Without --keep-encrypted, encrypted values are decrypted with the configuration of the source, and all values are
    encrypted with that of the target.
    """
    source, target = store_of("from", values), store_of("to", values)
    if keep_encrypted and (source.encryption or target.encryption):
        raise click.UsageError(
            "either --keep-encrypted, or --from-encryption-provider-config and --to-encryption-provider-config"
        )
    count, revision = run_to_completion(move(source, target, keep_encrypted=keep_encrypted))
    click.echo(f"{count} objects moved from {source.place} to {target.place}, which is at revision {revision}")


async def move(source: Store, target: Store, *, keep_encrypted: bool) -> tuple[int, int]:
    """Move all objects. A source in a data directory is locked until the move ends.

    Args:
        source: the store to read.
        target: the store to write, which must be empty.
        keep_encrypted: whether encrypted values are moved as they are.

    Returns:
        The number of objects, and the revision of the target.

    Raises:
        BackupError: the target is not empty, or the source has changed in between. The target must then be emptied.
    """
    from tetrapod.generic.storage.backup.contents import BackupError
    from tetrapod.generic.storage.backup.converting import converted
    from tetrapod.generic.storage.sqlite.lock import DatabaseLock

    lock = DatabaseLock(source.database) if not source.is_etcd and source.database.exists() else None
    try:
        contents = await source.decrypted(await source.read(keys=not target.is_etcd))
        wanted = await target.encrypted(converted(contents, keep_encrypted=keep_encrypted))
        revision = await target.write(wanted)
        again = await source.read(keys=False)
        revisions, later_revisions = (
            {item.key: item.revision for item in read.items if item.ttl is None} for read in (contents, again)
        )
        if revisions != later_revisions:
            raise BackupError(
                "somebody wrote to the source meanwhile; stop its servers, empty the target, and begin again"
            )
        return len(wanted.items), revision
    finally:
        if lock is not None:
            lock.release()
