"""The server of the user's kubeconfig, for commands that send requests to a running server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tetrapod.generic.webhook.kubeconfig import Target

_Command = TypeVar("_Command", bound=Callable[..., Any])


def kubeconfig_options(note: str = "") -> Callable[[_Command], _Command]:
    """Return a decorator that adds `--kubeconfig` and `--context` to a command. `note` is added to the help text."""

    def decorate(command: _Command) -> _Command:
        command = click.option(
            "--context", default="", help="The context of the kubeconfig; the current one by default."
        )(command)
        text = "The kubeconfig; the files of $KUBECONFIG or ~/.kube/config by default."
        return click.option("--kubeconfig", default="", help=f"{text} {note}".rstrip())(command)

    return decorate


def server_of(kubeconfig: str, context: str) -> Target:
    """Return the server of a kubeconfig. A credential plugin of its user is run.

    Args:
        kubeconfig: the file; "" for all of $KUBECONFIG together, or ~/.kube/config.
        context: the context; "" for the current one.

    Raises:
        click.ClickException: the file is unusable, or the plugin returned no credentials.
    """
    from tetrapod.cli.exec_plugin import exec_credentials
    from tetrapod.cli.kubeconfig_files import merge_kubeconfigs
    from tetrapod.generic.webhook.kubeconfig import Kubeconfig, read_kubeconfig

    files = [file for file in os.environ.get("KUBECONFIG", "").split(os.pathsep) if file]
    try:
        if kubeconfig:
            return read_kubeconfig(kubeconfig, context, exec_credentials)
        merged = merge_kubeconfigs(files or [str(Path("~/.kube/config").expanduser())])
        return Kubeconfig(merged, Path(), context).target(exec_credentials)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
