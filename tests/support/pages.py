"""The code blocks of documentation pages, for tests that execute them as they are written."""

from __future__ import annotations

import re
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
    return [Block(*found) for found in _BLOCK.findall(page.read_text())]


def block(page: Path, beginning: str) -> str:
    """Return the text of the one block of a page that begins so."""
    (found,) = [each.text for each in blocks(page) if each.text.startswith(beginning)]
    return found
