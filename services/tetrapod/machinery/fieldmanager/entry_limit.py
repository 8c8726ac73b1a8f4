"""The limit of ten update entries in managedFields: older ones are merged into the manager `ancient-changes`.

Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/capmanagers.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.entries import UPDATE, Managed, identifier, new_entry

MAX_UPDATE_MANAGERS: Final = 10
OLD_UPDATES: Final = "ancient-changes"


def cap_update_managers(managed: Managed, limit: int = MAX_UPDATE_MANAGERS) -> Managed:
    """Return managed fields with at most `limit` update entries, by merging the oldest entries of each version.

    The merged entries belong to the manager `ancient-changes`. Entries of different versions cannot be merged, so more
    than `limit` may remain. `managed` is not modified, and is returned if it has no more than `limit`.

    Args:
        managed: the entries by the identifiers of their managers.
        limit: the most entries of updates; those of applies do not count.
    """
    updaters = [manager for manager, entry in managed.items() if not entry.applied]
    excess = len(updaters) - limit
    if excess <= 0:
        return managed
    updaters.sort(key=lambda manager: (managed[manager].time or "", manager))
    out = dict(managed)
    oldest_of_version: dict[str, str] = {}
    for manager in updaters:
        if excess <= 0:
            break
        entry = out[manager]
        version = entry.api_version
        oldest = oldest_of_version.setdefault(version, manager)
        if oldest == manager:
            continue
        bucket = identifier(OLD_UPDATES, UPDATE, version, "")
        older = out[bucket] if bucket in out else out.pop(oldest)
        # Keep the time of the newer entry.
        fields = fieldset.union(entry.fields, older.fields)
        out[bucket] = new_entry(bucket, fields, version, applied=False, time=entry.time)
        if manager != bucket:
            del out[manager]
        excess -= 1
    return out
