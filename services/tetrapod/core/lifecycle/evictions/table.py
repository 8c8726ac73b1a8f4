"""The columns of Evictions. Upstream: pkg/printers/internalversion/printers.go, printEviction."""

from __future__ import annotations

import time
from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, UNKNOWN, UNSET, age, name_of, seconds, since, status_of, until
from tetrapod.core.lifecycle.targets import state_cell, target_cells
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_ENDED: Final = ("Canceled", "Interrupted", "Completed")


def _row(obj: Object) -> list[Any]:
    status = status_of(obj)
    listed = status.get("targetResponders") or []
    begun = [each for each in listed if each.get("state") in (*_ENDED, "Active")]
    shown = next((each for each in reversed(begun) if each["state"] == "Active"), begun[-1] if begun else None)
    name = UNSET if shown is None else shown.get("name") or ""
    progress = next((each for each in status.get("responders") or () if shown and each.get("name") == name), None)
    state, end = (UNSET, UNKNOWN) if shown is None or progress is None else _progress(shown["state"], progress)
    heartbeat, message = UNSET, UNSET
    if progress is not None:
        heartbeat = _ago(progress["heartbeatTime"]) if progress.get("heartbeatTime") else UNSET
        message = (progress.get("message") or "").strip() or UNSET
    return [
        name_of(obj),
        *target_cells(obj),
        state_cell(obj),
        f"{name} ({len(begun)}/{len(listed)})",
        state,
        end,
        _requesters(status.get("requesters") or []),
        age(obj),
        heartbeat,
        message,
    ]


def _progress(state: str, progress: Object) -> tuple[str, str]:
    """Return two cells: the state of the shown responder, and when it is expected to finish.

    Args:
        state: its state among the target's responders.
        progress: what the responder reports of itself.
    """
    if state == "Completed":
        ended = progress.get("completionTime")
        return f"{state} ({_ago(ended)})" if ended else state, "-"
    if state != "Active":
        return state, "-"
    start, expected = progress.get("startTime"), progress.get("expectedCompletionTime")
    if not start:
        return state, UNKNOWN
    if not expected:
        end = UNKNOWN
    else:
        end = f"in {until(expected)}" if seconds(expected) > time.time() else _ago(expected)
    return f"Started ({_ago(start)})", end


def _ago(timestamp: str) -> str:
    return f"{since(timestamp)} ago"


def _requesters(listed: list[Object]) -> str:
    """Return the first requester that has not withdrawn, with the number of the others."""
    names = sorted(each.get("name") or "" for each in listed if each.get("intent") != "Withdrawn")
    if not names:
        return "<withdrawn>" if listed else NONE
    return names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1} more..."


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Target"),
        Column("Target Type"),
        Column("Status"),
        Column("Active Responder"),
        Column("Responder Status"),
        Column("Responder Expected Finish"),
        Column("Requesters"),
        AGE,
        Column("Responder Heartbeat", priority=1),
        Column("Responder Status Message", priority=1),
    ),
    _row,
)
