"""The command line of an aggregated API server, which serves until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.aggregated.cluster import Cluster
from tetrapod.generic.aggregated.kinds import Kind
from tetrapod.generic.aggregated.server import AggregatedServer, Settings
from tetrapod.generic.observability.logs import configure
from tetrapod.generic.proxy import ClientTLS
from tetrapod.generic.scheduling.event_loop import on_signals

log = logging.getLogger(__name__)


LOCALHOST: Final = ("localhost", "127.0.0.1")


def run(
    kinds: Sequence[Kind],
    *,
    name: str = "aggregated",
    admission: Sequence[Plugin] = (),
    hosts: Sequence[str] = LOCALHOST,
    port: int = 6443,
) -> None:
    """Parse the command line and serve the kinds until SIGTERM or SIGINT (see `--help`).

    Args:
        kinds: the kinds to serve.
        name: the name of the command and of the server, for logs and help texts.
        admission: plugins that are called for each write, in this order.
        hosts: the default of `--hosts`.
        port: the default of `--secure-port`.
    """
    command(kinds, name=name, admission=admission, hosts=hosts, port=port)()


def command(
    kinds: Sequence[Kind],
    *,
    name: str = "aggregated",
    admission: Sequence[Plugin] = (),
    hosts: Sequence[str] = LOCALHOST,
    port: int = 6443,
) -> click.Command:
    """Return a click command that serves the kinds until SIGTERM or SIGINT, to be added to another command line.

    Args:
        kinds: the kinds to serve.
        name: the name of the command and of the server, for logs and help texts.
        admission: plugins that are called for each write, in this order.
        hosts: the default of `--hosts`: the names and addresses of the serving certificate.
        port: the default of `--secure-port`.
    """
    api_versions = ", ".join(sorted({kind.api_version for kind in kinds}))

    @click.command(name, help=f"Serve {api_versions}.")
    @click.option(
        "--kubeconfig",
        type=click.Path(),
        help="Path to the kubeconfig of the cluster. Default: the service account of the pod.",
    )
    @click.option("--server", default="", help="URL of the Kubernetes API server, instead of a kubeconfig.")
    @click.option("--certificate-authority", type=click.Path(path_type=Path), help="CA bundle of --server.")
    @click.option("--token-file", default="", help="File with the bearer token for --server.")
    @click.option(
        "--data-dir",
        type=click.Path(path_type=Path),
        default=Path("data"),
        show_default=True,
        help="Directory of the database and the certificates.",
    )
    @click.option("--bind-address", default="0.0.0.0", show_default=True, help="IP address to listen on.")
    @click.option("--secure-port", default=port, show_default=True, help="Port to listen on. 0 chooses a free port.")
    @click.option(
        "--hosts",
        "host_names",
        default=",".join(hosts),
        show_default=True,
        help="Comma-separated names and addresses of the serving certificate.",
    )
    def serve(
        kubeconfig: str | None,
        server: str,
        certificate_authority: Path | None,
        token_file: str,
        data_dir: Path,
        bind_address: str,
        secure_port: int,
        host_names: str,
    ) -> None:
        configure("text", 1)
        try:
            if kubeconfig:
                cluster = Cluster.from_kubeconfig(kubeconfig)
            elif server:
                pem = certificate_authority.read_text("utf-8") if certificate_authority else ""
                cluster = Cluster(server, ClientTLS(ca_data=pem), token_file)
            else:
                cluster = Cluster.in_cluster()
        except (OSError, ValueError) as error:
            raise click.ClickException(f"the Kubernetes API: {error}") from None
        settings = Settings(cluster, data_dir, bind_address, secure_port, host_names.split(","), name)
        asyncio.run(_serve(kinds, settings, admission))

    return serve


async def _serve(kinds: Sequence[Kind], settings: Settings, admission: Sequence[Plugin]) -> None:
    stopping = asyncio.Event()
    on_signals((signal.SIGTERM, signal.SIGINT), stopping.set)
    server = AggregatedServer(kinds, settings, admission=admission)
    starting = asyncio.create_task(server.start())
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        return
    await starting
    log.info("%s is ready on port %d; its CA is %s", settings.name, server.port, settings.data_dir / "pki" / "ca.crt")
    await stopped
    await server.stop()
