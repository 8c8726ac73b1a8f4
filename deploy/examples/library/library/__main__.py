"""`python -m library`: serve until SIGTERM. What it is told comes from flags, all with defaults that fit its container."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path

import click

from library.server import LibraryServer, Settings
from tetrapod.generic.logs import configure


@click.command()
@click.option("--data-dir", type=click.Path(path_type=Path), default=Path("/data"), show_default=True, help="Database and certificates.")
@click.option("--secure-port", default=6443, show_default=True)
@click.option("--hosts", default="library,library.library.svc,localhost", show_default=True, help="Names of the serving certificate.")
@click.option("--server", default="https://aggregator:6443", show_default=True, help="The Kubernetes API: who is asked about users.")
@click.option("--certificate-authority", default="/credentials/ca.crt", show_default=True, help="The CA of that server.")
@click.option("--token-file", default="/credentials/token", show_default=True, help="Our service account's token.")
def main(data_dir: Path, secure_port: int, hosts: str, server: str, certificate_authority: str, token_file: str) -> None:
    """Serve library.example.com/v1."""
    configure("text", 1)
    settings = Settings(data_dir, secure_port, tuple(hosts.split(",")), server, certificate_authority, token_file)
    asyncio.run(run(settings))


async def run(settings: Settings) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    server = LibraryServer(settings)
    await server.start()
    logging.getLogger("library").info("ready on port %d", server.port)
    await stopping.wait()
    await server.stop()


if __name__ == "__main__":
    main()
