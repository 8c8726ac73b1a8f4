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
        text = "The kubeconfig; the first file of $KUBECONFIG or ~/.kube/config by default."
        return click.option("--kubeconfig", default="", help=f"{text} {note}".rstrip())(command)

    return decorate


def server_of(kubeconfig: str, context: str) -> Target:
    """Return the server of a kubeconfig. A credential plugin of its user is run.

    Args:
        kubeconfig: the file; "" for the first of $KUBECONFIG, or ~/.kube/config.
        context: the context; "" for the current one.

    Raises:
        click.ClickException: the file is unusable, or the plugin returned no credentials.
    """
    from tetrapod.cli.exec_plugin import exec_credentials
    from tetrapod.generic.webhook.kubeconfig import read_kubeconfig

    file = (
        kubeconfig or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or str(Path("~/.kube/config").expanduser())
    )
    try:
        return read_kubeconfig(file, context, exec_credentials)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
