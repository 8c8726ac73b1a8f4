"""The command line: `tetrapod up | serve SERVICE | certs | backup | restore | migrate | …`."""

from __future__ import annotations

import gc
import logging
import sys
from pathlib import Path

import click

from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.process import tell_flags
from tetrapod.cli.backup import backup, restore
from tetrapod.cli.certs import certs
from tetrapod.cli.check_apiserver import check_apiserver
from tetrapod.cli.flags import with_flags
from tetrapod.cli.kube_apiserver import kube_apiserver
from tetrapod.cli.migrate import migrate
from tetrapod.cli.trace import trace
from tetrapod.generic.observability.logs import configure

log = logging.getLogger("tetrapod")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run the Kubernetes API server as four Python services over one etcd, or as one process over SQLite."""


def _prepare(options: Options) -> None:
    gc.set_threshold(100_000)  # what is imported stays: looking at it again and again took a twentieth of the start (see running.py)
    configure(options.logging.format, options.verbosity)
    tell_flags(options.flags())
    if options.ignored:
        log.warning("flags without a meaning here, ignored: %s", ", ".join(f"--{name}" for name in options.ignored))


@with_flags("up", name="up")
def up(options: Options) -> None:
    """Run all four services in one process, over SQLite (or etcd), with certificates of its own."""
    _prepare(options)
    from tetrapod.apps.embedded import Embedded
    from tetrapod.apps.process import run
    from tetrapod.generic.configuration.files import complaint

    def embedded() -> Embedded:
        try:
            options.data_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(complaint("mkdir", str(options.data_dir), error)) from None
        return Embedded(options)

    sys.exit(run(embedded))


@main.group()
def serve() -> None:
    """Run one of the four services on its own, over etcd."""


def _serve_command(name: str) -> None:
    @with_flags(name, name=name)
    def command(options: Options) -> None:
        _prepare(options)
        from tetrapod.apps.process import run
        from tetrapod.apps.separate import remote_service

        sys.exit(run(remote_service(name, options)))

    command.help = f"Run {name} on its own."
    serve.add_command(command)


for _name in ("aggregator", "core", "extensions", "auth"):
    _serve_command(_name)


@main.command()
@click.option("--data-dir", type=click.Path(path_type=Path), default=Path("data"), show_default=True, help="The data directory of `up`.")
@click.option("--server", default="https://127.0.0.1:6443", show_default=True, help="The server's URL.")
@click.option("--user", default="kubernetes-admin", show_default=True, help="The user: the certificate's common name.")
@click.option("--group", multiple=True, default=("system:masters",), show_default=True, help="Groups; may be repeated.")
def kubeconfig(data_dir: Path, server: str, user: str, group: tuple[str, ...]) -> None:
    """Print a kubeconfig with a new client certificate for a user and groups."""
    from tetrapod.generic.certificates.authority import Authority
    from tetrapod.generic.certificates.kubeconfig import kubeconfig as config_of
    from tetrapod.generic.certificates.pki import Pki

    pki = Pki(data_dir / "pki")
    try:
        authority = Authority.load(pki.client_ca.read_bytes(), pki.key("client-ca").read_bytes())
    except OSError as error:
        raise click.ClickException(f"{error.strerror}: {error.filename}; has `tetrapod up` run with this data directory?") from None
    certificate, key = authority.issue_client(user, group)
    import json

    click.echo(json.dumps(config_of(server, ca=pki.ca.read_bytes(), certificate=certificate, key=key, user=user), indent=2))


@main.command()
def version() -> None:
    """Print the version."""
    from tetrapod.generic.configuration.version import GIT_VERSION

    click.echo(f"Tetrapod, Kubernetes {GIT_VERSION}")


main.add_command(up)
main.add_command(certs)
main.add_command(check_apiserver)
main.add_command(trace)
main.add_command(kube_apiserver)
main.add_command(backup)
main.add_command(restore)
main.add_command(migrate)

if __name__ == "__main__":
    main()
