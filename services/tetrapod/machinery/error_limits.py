"""Limits of error responses, so that a small or rejected request cannot cause a huge response.

Upstream has no such limits: it lists every error and quotes every value in full. Real error responses stay far below
these limits and are equal to upstream's. Texts that exceed a limit end with a note of how much was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

MAX_ERRORS: Final = 1000
"""The most errors that one response lists."""
MAX_TEXT: Final = 192 * 1024
"""The most characters of a message, and of all causes of a response together."""
MAX_MESSAGE: Final = 2 * MAX_TEXT
"""The most characters of the message of any error."""
MAX_VALUE: Final = 96 * 1024
"""The most characters of one quoted value.

Upstream quotes credential specs of 64 Ki, the longest value in realistic errors.
"""
MAX_PATH: Final = 4096
"""The most characters of a field path and of a name. Keys of maps and names in URLs can have a megabyte."""


def cut(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters as it is, and a longer one cut off, with a note.

    The note says how many characters were left out, and is not part of the limit.
    """
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit:,} more characters)"


def cut_path(path: str) -> str:
    """Return a field path or a name, shortened to MAX_PATH characters, the last of which are then dots.

    Paths are built part by part, so a shortened path can be shortened again: it keeps its length.
    """
    return path if len(path) <= MAX_PATH else path[: MAX_PATH - 3] + "..."


def more(count: int, noun: str = "error") -> str:
    """Return the last line of a list that was shortened, such as `... and 3 more errors`.

    Args:
        count: how many entries were left out; 0 if that is unknown.
        noun: the noun for an entry, in the singular.
    """
    return f"... and {count:,} more {noun}{'' if count == 1 else 's'}" if count else f"... and more {noun}s"


def join(texts: Iterable[str], separator: str = ", ", noun: str = "error") -> str:
    """Join texts with a separator, at most MAX_ERRORS of them and about MAX_TEXT characters.

    The first text is always included. Each text is shortened to MAX_VALUE. If texts are left out, a note of their
    number follows as the last one.

    Args:
        texts: the texts.
        separator: the separator.
        noun: the noun for a text in the note, in the singular.
    """
    kept: list[str] = []
    left_out = used = 0
    for text in texts:
        if left_out or len(kept) == MAX_ERRORS or (kept and used + len(text) > MAX_TEXT):
            left_out += 1
            continue
        kept.append(cut(text, MAX_VALUE))
        used += len(kept[-1])
    if left_out:
        kept.append(more(left_out, noun))
    return separator.join(kept)


LEFT_OUT: Final = "\U0010ffff"
"""A placeholder in a list of paths or texts for each one beyond MAX_ERRORS. It sorts last."""


def record(texts_so_far: list[str], text: str) -> None:
    """Append a text to a list that `recorded` reads; beyond MAX_ERRORS texts, append the placeholder LEFT_OUT instead.

    So the list counts every text, but its memory is bounded.

    Args:
        texts_so_far: the list, which is modified.
        text: the text to append.
    """
    texts_so_far.append(text if len(texts_so_far) < MAX_ERRORS else LEFT_OUT)


def recorded(texts_so_far: Sequence[str]) -> tuple[list[str], int]:
    """Return the texts of a list that `record` filled, without placeholders, and how many texts were left out.

    Args:
        texts_so_far: the list, which is not modified.
    """
    texts = [text for text in texts_so_far[: 2 * MAX_ERRORS] if text != LEFT_OUT]
    return texts[:MAX_ERRORS], len(texts_so_far) - min(len(texts), MAX_ERRORS)
