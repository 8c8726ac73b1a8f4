"""`tetrapod certs`: creates the certificates of the four services.

It writes them to directories, and with --secrets also to Secrets of the cluster that hosts the services.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tetrapod.cli.parameter_types import Duration
from tetrapod.generic.client.service_account import MOUNT

if TYPE_CHECKING:
    from tetrapod.generic.certificates.pki import Pki


def _list(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    return [item for item in value.split(",") if item]


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("certs"),
    show_default=True,
    help="The directory in which a directory for each service is created.",
)
@click.option(
    "--hosts",
    default="localhost,127.0.0.1,aggregator",
    show_default=True,
    callback=_list,
    help="Host names and addresses of the aggregator, comma-separated.",
)
@click.option(
    "--service-hosts",
    default="",
    callback=_list,
    help="Additional host names of each service, comma-separated; {service} is replaced by its name.",
)
@click.option(
    "--etcd-hosts", default="", callback=_list, help="Additional host names of the etcd members, comma-separated."
)
@click.option(
    "--server",
    default="https://localhost:6443",
    show_default=True,
    help="The URL of the server in the admin kubeconfig.",
)
@click.option(
    "--renew-before",
    type=Duration(),
    default="720h",
    show_default=True,
    help="Renew certificates that expire sooner than this.",
)
@click.option(
    "--secrets", default="", metavar="PREFIX", help="In a pod: store the directories as Secrets PREFIX-core and so on."
)
@click.option("--secret-label", multiple=True, metavar="KEY=VALUE", help="A label of the Secrets. May be repeated.")
@click.option(
    "--service-account",
    type=click.Path(path_type=Path),
    default=MOUNT,
    show_default=True,
    help="The service account directory of the pod, for --secrets.",
)
def certs(  # noqa: PLR0913 - one for each option
    out: Path,
    hosts: list[str],
    service_hosts: list[str],
    etcd_hosts: list[str],
    server: str,
    renew_before: float,
    secrets: str,
    secret_label: tuple[str, ...],
    service_account: Path,
) -> None:
    """Create the certificates of the four services.

    Each service gets a directory, and so does an administrator with a kubeconfig.

    Valid files are kept.
    """
    from tetrapod.generic.certificates.services import write_service_certificates

    def write() -> None:
        pki = write_service_certificates(
            out, hosts, service_hosts=service_hosts, etcd_hosts=etcd_hosts, renew_before=renew_before
        )
        _write_admin(out, pki, server)

    if not secrets:
        write()
        click.echo(f"certificates in {out}/, admin kubeconfig {out}/admin/kubeconfig")
        return
    from tetrapod.generic.certificates.secrets import Cluster, Secrets, SecretsError

    labels = dict(label.split("=", 1) for label in secret_label if "=" in label)
    try:
        kept = Secrets(Cluster.of_pod(service_account), secrets, out, labels)
        kept.load()
        write()
        changed = kept.save()
    except SecretsError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"written: {', '.join(changed)}" if changed else "everything is good as it is")


def _write_admin(out: Path, pki: Pki, server: str) -> None:
    from tetrapod.generic.certificates.kubeconfig import kubeconfig, write_kubeconfig

    certificate, key = pki.admin
    config = kubeconfig(server, ca=pki.ca.read_bytes(), certificate=certificate.read_bytes(), key=key.read_bytes())
    write_kubeconfig(out / "admin" / "kubeconfig", config)
