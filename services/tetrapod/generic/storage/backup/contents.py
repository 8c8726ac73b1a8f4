"""`Contents`: the contents of a store at one revision, in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from tetrapod.generic.storage.unreadable import ENCRYPTED

_SHOWN: Final = 5


class BackupError(Exception):
    """A backup, restoration or migration is not possible; the text is for the user and says what to do."""


class Item(NamedTuple):
    """One key of the store.

    Attributes:
        key: the key below the store's prefix, such as "pods/ns/name".
        value: the stored bytes.
        revision: its mod revision.
        created: its creation revision.
        ttl: the remaining seconds of its lease; None if it does not expire.
    """

    key: str
    value: bytes
    revision: int
    created: int
    ttl: float | None = None


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a store at one revision.

    `items` are in key order; `source` describes the store. `files` are the keys and certificates of a data directory by
    name, with their bytes.
    """

    source: str
    revision: int
    items: Sequence[Item]
    files: Mapping[str, bytes] = field(default_factory=dict)

    def digest(self) -> str:
        """Return a hash (SHA-256, hexadecimal) of keys and values, without revisions, TTLs and files."""
        checksum = hashlib.sha256()
        for item in self.items:
            checksum.update(b"%d %d " % (len(item.key), len(item.value)))
            checksum.update(item.key.encode())
            checksum.update(item.value)
        return checksum.hexdigest()

    @property
    def encrypted(self) -> int:
        """The number of values that are encrypted at rest."""
        return sum(item.value.startswith(ENCRYPTED) for item in self.items)

    def with_items(self, items: Sequence[Item]) -> Contents:
        """Return a copy that has `items` instead of its own."""
        return replace(self, items=items)


def first_lines(lines: Sequence[str]) -> str:
    """Return the first five error lines, indented, and a line with the number of the remaining ones, as one text."""
    more = [f"  … and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join([*(f"  {line}" for line in lines[:_SHOWN]), *more])
