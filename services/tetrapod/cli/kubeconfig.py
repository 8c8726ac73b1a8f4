"""`tetrapod kubeconfig`: a kubeconfig with a new client certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tetrapod.generic.certificates.pki import Pki


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=Path("data"),
    show_default=True,
    help="The data directory of `tetrapod up`, or the --out of `tetrapod certs`.",
)
@click.option("--server", default="https://127.0.0.1:6443", show_default=True, help="The URL of the server.")
@click.option(
    "--user", default="kubernetes-admin", show_default=True, help="The user: the common name of the certificate."
)
@click.option(
    "--group",
    multiple=True,
    default=("system:masters",),
    show_default=True,
    help="A group of the user. May be repeated.",
)
def kubeconfig(data_dir: Path, server: str, user: str, group: tuple[str, ...]) -> None:
    """Print a kubeconfig with a new client certificate.

    The certificate names a user and groups. The CA below --data-dir signs it.
    """
    import json

    from tetrapod.generic.certificates.authority import Authority
    from tetrapod.generic.certificates.kubeconfig import kubeconfig as build

    pki = _authorities(data_dir)
    try:
        authority = Authority.load(pki.client_ca.read_bytes(), pki.key("client-ca").read_bytes())
        ca = pki.ca.read_bytes()
    except OSError as error:
        raise click.ClickException(f"{error.strerror}: {error.filename}") from None
    except ValueError as error:
        raise click.ClickException(f"the CA in {pki.directory} is malformed: {error}") from None
    certificate, key = authority.issue_client(user, group)
    click.echo(json.dumps(build(server, ca=ca, certificate=certificate, key=key, user=user), indent=2))


def _authorities(data_dir: Path) -> Pki:
    """Return the directory of the CAs: `pki` of one process, or `ca` of four services.

    Raises:
        click.ClickException: there is neither.
    """
    from tetrapod.generic.certificates.pki import Pki

    for name in ("pki", "ca"):
        pki = Pki(data_dir / name)
        if pki.client_ca.exists():
            return pki
    raise click.ClickException(
        f"no CA in {data_dir / 'pki'} or {data_dir / 'ca'}: --data-dir must be the data directory of `tetrapod up`, "
        "which has run, or the --out of `tetrapod certs`"
    )
