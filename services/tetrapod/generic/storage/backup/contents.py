"""`Contents`: what a store held at one revision, in memory: what is read, kept, compared and written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from tetrapod.generic.storage.unreadable import ENCRYPTED

_SHOWN: Final = 5


class BackupError(Exception):
    """What keeps a backup, a restoration or a move from being made; the text says what to do."""


class Item(NamedTuple):
    key: str  # below the prefix: "pods/ns/name"
    value: bytes
    revision: int
    created: int
    ttl: float | None = None
    """Seconds that it had left."""


@dataclass(frozen=True, slots=True)
class Contents:
    """`items` in the order of their keys; `files` are what belongs to a data directory: keys and certificates."""

    source: str
    revision: int
    items: Sequence[Item]
    files: Mapping[str, bytes] = field(default_factory=dict)

    def digest(self) -> str:
        """Of keys and values, whatever the revisions."""
        found = hashlib.sha256()
        for item in self.items:
            found.update(b"%d %d " % (len(item.key), len(item.value)))
            found.update(item.key.encode())
            found.update(item.value)
        return found.hexdigest()

    @property
    def encrypted(self) -> int:
        """How many values only the holder of a key can read."""
        return sum(item.value.startswith(ENCRYPTED) for item in self.items)

    def with_items(self, items: Sequence[Item]) -> Contents:
        return replace(self, items=items)


def some(lines: Sequence[str]) -> str:
    """The first few of what is wrong, one in each line."""
    more = [f"  … and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join([*(f"  {line}" for line in lines[:_SHOWN]), *more])
