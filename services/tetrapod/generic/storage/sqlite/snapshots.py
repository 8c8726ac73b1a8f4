"""Snapshots of the embedded store, and restoring them.

Restoring is an ordinary write: keys that differ are put or deleted in one transaction, at new revisions, and every
watch receives the events. Caches, informers and controllers therefore need no special handling, and revisions never
go backwards.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tetrapod.generic.storage.sqlite import reading
from tetrapod.generic.storage.sqlite.transaction import Transaction

_CURRENT = "SELECT c.key, r.value, c.revision, c.created, c.lease FROM current c JOIN revisions r USING (revision)"


class SnapshotEntry(NamedTuple):
    """The value of one key.

    Attributes:
        value: the stored bytes.
        revision: the mod revision.
        created: the creation revision.
        lease: the ID of the lease; 0 for none.
    """

    value: bytes
    revision: int
    created: int
    lease: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The contents of a store at one revision. It is immutable and can be restored into any store.

    Attributes:
        revision: the revision.
        entries: the values by key.
        leases: the remaining seconds of each lease, by its ID.
    """

    revision: int
    entries: Mapping[str, SnapshotEntry]
    leases: Mapping[int, float]


def take(connection: sqlite3.Connection, now: float) -> Snapshot:
    """Return a snapshot of the current contents, without history.

    Args:
        now: the current time of the store's clock, from which the remaining seconds of leases are computed.
    """
    entries = {row[0]: SnapshotEntry(*row[1:]) for row in connection.execute(_CURRENT)}
    leases = {lease: expires - now for lease, expires in connection.execute("SELECT id, expires FROM leases")}
    return Snapshot(reading.last_revision(connection), entries, leases)


def restore(
    transaction: Transaction, connection: sqlite3.Connection, snapshot: Snapshot, now: float
) -> tuple[int, float | None]:
    """Make the store hold the contents of `snapshot`, by writes in `transaction`.

    Objects are put in the order of their creation and deleted in the reverse order, so that no watcher sees an object
    before its namespace or its owner.

    Args:
        connection: the connection of the transaction, to read the present contents.
        now: the current time of the store's clock, from which the restored leases run.

    Returns:
        the number of keys that differed, and the time at which the first newly granted lease expires (None: no lease).
    """
    present = {row[0]: SnapshotEntry(*row[1:]) for row in connection.execute(_CURRENT)}
    gone = [(stored.created, key, stored.revision) for key, stored in present.items() if key not in snapshot.entries]
    for _, key, revision in sorted(gone, reverse=True):
        transaction.delete(key, revision)
    leases: dict[int, int] = {}
    changed = len(gone)
    for key, stored in sorted(snapshot.entries.items(), key=lambda item: item[1].created):
        existing = present.get(key)
        if existing is not None and existing.value == stored.value:
            continue
        if stored.lease and stored.lease not in leases:
            leases[stored.lease] = transaction.grant(now + max(snapshot.leases.get(stored.lease, 0.0), 0.0))
        transaction.put(
            key, stored.value, existing.revision if existing is not None else 0, leases.get(stored.lease, 0)
        )
        changed += 1
    expiries = [now + max(snapshot.leases.get(lease, 0.0), 0.0) for lease in leases]
    return changed, min(expiries, default=None)
