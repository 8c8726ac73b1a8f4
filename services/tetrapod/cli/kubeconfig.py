"""`tetrapod kubeconfig`: a kubeconfig with a new client certificate."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=Path("data"),
    show_default=True,
    help="The data directory of `tetrapod up`.",
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

    The certificate names a user and groups. The CA of --data-dir signs it.
    """
    import json

    from tetrapod.generic.certificates.authority import Authority
    from tetrapod.generic.certificates.kubeconfig import kubeconfig as build
    from tetrapod.generic.certificates.pki import Pki

    pki = Pki(data_dir / "pki")
    try:
        authority = Authority.load(pki.client_ca.read_bytes(), pki.key("client-ca").read_bytes())
    except OSError as error:
        raise click.ClickException(
            f"{error.strerror}: {error.filename}; has `tetrapod up` run with this data directory?"
        ) from None
    certificate, key = authority.issue_client(user, group)
    click.echo(json.dumps(build(server, ca=pki.ca.read_bytes(), certificate=certificate, key=key, user=user), indent=2))
