"""`tetrapod version`, and the option `--version` of all commands that run a server."""

from __future__ import annotations

from typing import Final

import click

_DISTRIBUTION: Final = "tetrapod-apiserver"


def _versions() -> str:
    """Return the versions of Tetrapod and of Kubernetes. That of Tetrapod is left out if it is not installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed_version

    try:
        own = f"Tetrapod {installed_version(_DISTRIBUTION)}"
    except PackageNotFoundError:
        own = "Tetrapod"
    return f"{own}, {_kubernetes()}"


def _kubernetes() -> str:
    """Return what `kube-apiserver --version` prints."""
    from tetrapod.generic.configuration.version import GIT_VERSION

    return f"Kubernetes {GIT_VERSION}"


def version_option(*, upstream: bool = False) -> click.Option:
    """Return the option `--version`, which prints the version and ends the program.

    Args:
        upstream: print only the version of Kubernetes, as kube-apiserver and kube-proxy do, because programs parse it.
    """

    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(_kubernetes() if upstream else _versions())
            ctx.exit()

    text = "Print the version and exit."
    return click.Option(["--version"], is_flag=True, expose_value=False, is_eager=True, callback=show, help=text)


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(_versions())
