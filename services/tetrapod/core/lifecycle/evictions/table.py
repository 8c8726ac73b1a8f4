"""The columns of Evictions. Upstream: pkg/printers/internalversion/printers.go, printEviction."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, UNSET, age, name_of, status_of
from tetrapod.core.lifecycle.targets import state_cell, target_cells
from tetrapod.machinery.golang.durations import human_duration
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import UNKNOWN, TimedCell, since
from tetrapod.machinery.timestamps import parse

_ENDED: Final = ("Canceled", "Interrupted", "Completed")


def _row(obj: Object) -> list[Any]:
    status = status_of(obj)
    listed = status.get("targetResponders") or []
    begun = [each for each in listed if each.get("state") in (*_ENDED, "Active")]
    shown = next((each for each in reversed(begun) if each["state"] == "Active"), begun[-1] if begun else None)
    name = UNSET if shown is None else shown.get("name") or ""
    progress = next((each for each in status.get("responders") or () if shown and each.get("name") == name), None)
    state, end = (UNSET, UNKNOWN) if shown is None or progress is None else _progress(shown["state"], progress)
    heartbeat: TimedCell | str = UNSET
    message = UNSET
    if progress is not None:
        heartbeat = since(progress["heartbeatTime"], suffix=" ago") if progress.get("heartbeatTime") else UNSET
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


class _Expected(TimedCell, frozen=True, gc=False):
    """The time until a moment ("in 5m"), or since it ("5m ago").

    Attributes:
        moment: seconds since the epoch.
    """

    moment: float

    def text(self, now: float) -> str:
        ahead = self.moment - now
        return f"in {human_duration(ahead)}" if ahead > 0 else f"{human_duration(-ahead)} ago"


def _progress(state: str, progress: Object) -> tuple[TimedCell | str, TimedCell | str]:
    """Return two cells: the state of the shown responder, and when it is expected to finish.

    Args:
        state: its state among the target's responders.
        progress: what the responder reports of itself.
    """
    if state == "Completed":
        ended = progress.get("completionTime")
        return since(ended, f"{state} (", " ago)") if ended else state, "-"
    if state != "Active":
        return state, "-"
    start, expected = progress.get("startTime"), progress.get("expectedCompletionTime")
    if not start:
        return state, UNKNOWN
    end = _Expected(parse(expected).timestamp()) if expected else UNKNOWN
    return since(start, "Started (", " ago)"), end


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
