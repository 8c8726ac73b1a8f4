"""Whether our own command line understands the arguments that manifests and units give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from tetrapod.cli.main import main


def understood(arguments: Sequence[str]) -> str:
    """The name of the command that would run. Raises click.UsageError; fails where a flag would be ignored, or is empty."""
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
