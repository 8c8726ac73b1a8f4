"""`tetrapod backup`: write all objects at one revision to a file that can be verified. See docs/how-to/backup.md."""

from __future__ import annotations

from pathlib import Path

import click

from tetrapod.apps.stores import Store
from tetrapod.cli.store_options import run_to_completion, store_options


@click.command()
@click.option("--out", "-o", type=click.Path(path_type=Path, dir_okay=False), help="The file to write.")
@click.option("--without-keys", is_flag=True, help="Exclude certificates and keys of the data directory.")
@click.option(
    "--verify",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read this file and print a summary, and write nothing.",
)
@store_options
def backup(store: Store, out: Path | None, without_keys: bool, verify: Path | None) -> None:
    """Write all objects of a store to a file.

    They are of one revision. The server may continue to run. A backup of a data directory includes its certificates and
    the key of service accounts, unless --without-keys is given; a backup of an etcd does not. Encrypted values stay
    encrypted, unless --encryption-provider-config tells how to decrypt them. Everyone with the backup can then read
    them.
    """
    from tetrapod.generic.storage.backup import archive

    async def summarize(path: Path) -> archive.Summary:
        return archive.read(path)[1]

    async def write(path: Path) -> None:
        archive.write(path, await store.decrypted(await store.read(keys=not without_keys)))

    if (out is None) == (verify is None):
        raise click.UsageError("either --out FILE or --verify FILE")
    if out is not None:
        run_to_completion(write(out))
    path = out or verify
    assert path is not None
    summary = run_to_completion(summarize(path))
    source = f"{summary.source}, Kubernetes {summary.kubernetes}"
    click.echo(f"{path}: {summary.objects} objects at revision {summary.revision}, of {summary.taken} ({source})")
    if summary.files:
        click.echo(f"  with {summary.files} files of certificates and keys: keep it secret")
    if summary.encrypted:
        click.echo(
            f"  {summary.encrypted} are encrypted, and of use only with the keys of their --encryption-provider-config"
        )
