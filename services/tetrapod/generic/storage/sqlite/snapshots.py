"""What the embedded store holds at one revision, and how it is made so again.

Going back is a write like any other: what differs is put or deleted in one transaction, at new revisions, and every watch is told.
So nothing that follows the store (caches, informers, controllers) need know of it, and revisions never go backwards.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tetrapod.generic.storage.sqlite import reading
from tetrapod.generic.storage.sqlite.transaction import Transaction

_CURRENT = "SELECT c.key, r.value, c.revision, c.created, c.lease FROM current c JOIN revisions r USING (revision)"


class Stored(NamedTuple):
    value: bytes
    revision: int
    created: int
    lease: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Immutable; good for the store it was taken of, and for any other."""

    revision: int
    entries: Mapping[str, Stored]
    leases: Mapping[int, float]
    """Seconds that each lease had left."""


def take(connection: sqlite3.Connection, now: float) -> Snapshot:
    entries = {row[0]: Stored(*row[1:]) for row in connection.execute(_CURRENT)}
    leases = {lease: expires - now for lease, expires in connection.execute("SELECT id, expires FROM leases")}
    return Snapshot(reading.last_revision(connection), entries, leases)


def restore(transaction: Transaction, connection: sqlite3.Connection, snapshot: Snapshot, now: float) -> tuple[int, float | None]:
    """Make the store hold what it held then. Returns how many keys differed, and when the first lease that was granted anew ends.

    What came first is put first and deleted last, so that nobody sees an object before its namespace, or its owner.
    """
    present = {row[0]: Stored(*row[1:]) for row in connection.execute(_CURRENT)}
    gone = [(stored.created, key, stored.revision) for key, stored in present.items() if key not in snapshot.entries]
    for _, key, revision in sorted(gone, reverse=True):
        transaction.delete(key, revision)
    leases: dict[int, int] = {}
    changed = len(gone)
    for key, stored in sorted(snapshot.entries.items(), key=lambda item: item[1].created):
        found = present.get(key)
        if found is not None and found.value == stored.value:
            continue
        if stored.lease and stored.lease not in leases:
            leases[stored.lease] = transaction.grant(now + max(snapshot.leases.get(stored.lease, 0.0), 0.0))
        transaction.put(key, stored.value, found.revision if found is not None else 0, leases.get(stored.lease, 0))
        changed += 1
    ends = [now + max(snapshot.leases.get(lease, 0.0), 0.0) for lease in leases]
    return changed, min(ends, default=None)
