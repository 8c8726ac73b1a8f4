"""`tetrapod version`."""

from __future__ import annotations

import click


@click.command()
def version() -> None:
    """Print the version."""
    from tetrapod.generic.configuration.version import GIT_VERSION

    click.echo(f"Tetrapod, Kubernetes {GIT_VERSION}")
