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


def version_option() -> click.Option:
    """Return the option `--version` of `tetrapod`, which prints the versions and ends the program."""

    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(_versions())
            ctx.exit()

    text = "Print the version and exit."
    return click.Option(["--version"], is_flag=True, expose_value=False, is_eager=True, callback=show, help=text)


def upstream_version_option() -> click.Option:
    """Return the option `--version` of kube-apiserver and kube-proxy.

    Without a value it prints the version of Kubernetes and ends the program, and with `raw` all of `/version`, as Go
    prints it. A version, which begins with `v`, is reported by the server from then on.

    Upstream: staging/src/k8s.io/component-base/version/verflag/verflag.go
    """

    def apply(ctx: click.Context, param: click.Parameter, value: str) -> None:
        if ctx.resilient_parsing:
            return
        try:
            printed = _printed(value)
        except ValueError as error:
            raise click.UsageError(f'invalid argument "{value}" for "--version" flag: {error}') from None
        if printed:
            click.echo(printed)
            ctx.exit()

    text = "Print the version and exit, with =raw in detail. =vX.Y.Z... sets the version that the server reports."
    return click.Option(
        ["--version"],
        is_flag=False,
        flag_value="true",
        default="false",
        metavar="[true|raw|vX.Y.Z...]",
        expose_value=False,
        is_eager=True,
        callback=apply,
        help=text,
    )


def _printed(value: str) -> str:
    """Return the text that `--version=VALUE` prints; "" if the program is to continue.

    Raises:
        ValueError: the value is invalid.
    """
    if value == "raw":
        from tetrapod.generic.configuration.version import version_info

        info = version_info() | dict.fromkeys(("emulationMajor", "emulationMinor"), "")
        info |= dict.fromkeys(("minCompatibilityMajor", "minCompatibilityMinor"), "")
        fields = (f'{name[0].upper()}{name[1:]}:"{text}"' for name, text in info.items())
        return f"version.Info{{{', '.join(fields)}}}"
    if value.startswith("v"):
        from tetrapod.generic.configuration.version import report_version

        report_version(value)
        return ""
    from tetrapod.machinery.golang.booleans import parse_bool

    return _kubernetes() if parse_bool(value) else ""


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(_versions())
