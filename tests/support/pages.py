"""The code blocks of documentation pages, for tests that execute them as they are written."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A code block: its language, which is "" for commands, and its text."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page in their order."""
    return _blocks(page.read_text())


def _blocks(text: str) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(text)]


def block(page: Path, beginning: str) -> str:
    """Return the text of the one block of a page that begins so."""
    (found,) = [each.text for each in blocks(page) if each.text.startswith(beginning)]
    return found


def commands(page: Path, heading: str) -> list[str]:
    """Return the blocks of commands of a section, up to the next heading of the same level.

    Args:
        page: the page.
        heading: the line of the heading, such as "## Containers".
    """
    level = heading.partition(" ")[0]
    section = page.read_text().split(f"\n{heading}\n")[1].split(f"\n{level} ")[0]
    found = [each.text for each in _blocks(section) if not each.language]
    assert found, heading
    return found


def execute(
    script: str,
    directory: Path,
    environment: Mapping[str, str],
    *,
    timeout: float,
    shell: Sequence[str] = ("sh", "-euc"),
) -> str:
    """Run commands, all of which must succeed, and return what they print on stdout.

    Args:
        script: the commands.
        directory: where they run.
        environment: their environment variables.
        timeout: the seconds that they may take.
        shell: the shell, to whose arguments the commands are added.
    """
    done = subprocess.run(
        [*shell, script],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
