"""The command line: `tetrapod up | serve SERVICE | certs | kubeconfig | version`."""

from __future__ import annotations

import logging
import sys

import click

from tetrapod.cli.flags import with_flags
from tetrapod.cli.options import Options
from tetrapod.generic.logs import configure

log = logging.getLogger("tetrapod")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The Kubernetes API server as four Python services over one etcd, or as one process over SQLite."""


def _prepare(options: Options) -> None:
    configure(options.logging_format, options.verbosity)
    if options.ignored:
        log.warning("flags without a meaning here, ignored: %s", ", ".join(f"--{name}" for name in options.ignored))


@with_flags("u", name="up")
def up(options: Options) -> None:
    """Run all four services in one process, over SQLite (or etcd), with certificates of its own."""
    _prepare(options)
    from tetrapod.cli.embedded import Embedded
    from tetrapod.cli.running import run

    options.data_dir.mkdir(parents=True, exist_ok=True)
    sys.exit(run(lambda: Embedded(options)))


@main.command()
def version() -> None:
    """Print the version."""
    from tetrapod.generic.version import GIT_VERSION

    click.echo(f"Tetrapod, Kubernetes {GIT_VERSION}")


main.add_command(up)

if __name__ == "__main__":
    main()
