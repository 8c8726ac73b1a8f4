"""Parse the arguments in manifests and systemd units with Tetrapod's own command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from tetrapod.cli.main import main


def parsed_command(arguments: Sequence[str]) -> str:
    """Return the name of the command that would run. Fail the test if a flag is ignored or empty.

    Raises:
        click.UsageError: the arguments are invalid.
    """
    rest, command, name = list(arguments), main, ""
    context = click.Context(main)
    while isinstance(command, click.Group):
        name = rest.pop(0)
        found: Any = command.get_command(context, name)
        assert found is not None, name
        command = found
    assert not [argument for argument in rest if argument.endswith("=")], rest
    context = command.make_context(name, rest)
    assert not context.meta.get("tetrapod.ignored"), context.meta
    return name
