"""Paths in JSON values: to walk them, and to copy a value with a change at one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

Path = tuple[str | int, ...]
REMOVED: Final = object()
"""The new value of `replaced` that deletes the old one."""


def nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every value in a value with its path, itself first."""
    yield path, value
    if isinstance(value, dict):
        for key, member in value.items():
            yield from nodes(member, (*path, key))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from nodes(element, (*path, index))


def replaced(value: Any, path: Sequence[str | int], new: Any) -> Any:
    """Return a value with another value at a path, or without one if it is REMOVED. The rest is shared."""
    if not path:
        return new
    head, *rest = path
    if isinstance(value, dict):
        copy = dict(value)
    else:
        copy = list(value)  # type: ignore[assignment]
    if not rest and new is REMOVED:
        del copy[head]
    else:
        copy[head] = replaced(copy[head] if rest else None, rest, new)
    return copy


def nested(path: Path, value: Any) -> Any:
    """Return the merge patch that sets a path without lists."""
    for key in reversed(path):
        value = {key: value}
    return value


def text(path: Path) -> str:
    """Return the path as in error messages, without indexes: `spec.containers[].name`."""
    return "".join("[]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def pointer(path: Path) -> str:
    """Return the path as a JSON pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
