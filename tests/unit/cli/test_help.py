"""Tests of `--help`: each command is listed with one whole sentence, and defaults are shown as they would be given."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from tetrapod.cli.main import main


def groups(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of a group of commands and of the groups in it."""
    yield path
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from groups(command, (*path, name))


def page(*arguments: str) -> str:
    """Return a help page as in a terminal of 80 columns."""
    return CliRunner().invoke(main, [*arguments, "--help"], terminal_width=80).output


@pytest.mark.parametrize("path", list(groups(main)), ids=" ".join)
def test_the_list_of_commands_cuts_off_no_sentence(path: tuple[str, ...]) -> None:
    commands = page(*path).partition("Commands:\n")[2].splitlines()
    assert commands
    assert [line for line in commands if not line.endswith(".") or line.endswith("...")] == []


@pytest.mark.parametrize(("command", "duration"), [("up", "1m0s"), ("proxy", "15m0s")])
def test_times_are_shown_as_durations_and_switches_in_lower_case(command: str, duration: str) -> None:
    text = re.sub(r"\s+", " ", page(command))
    assert f"[default: {duration}]" in text
    assert "[default: true]" in text
    assert re.findall(r"\[default: (?:\d+\.\d+|True|False)\]", text) == []
