"""Check that watches send each change after their start once, in order and unaltered, and no bookmark before the
changes that it covers.
"""

from __future__ import annotations

from collections.abc import Iterable

from chaos.checker.violation import Violation
from chaos.history import Event, Watched
from chaos.truth import Change, Truth


def check_watches(watches: Iterable[Watched], truth: Truth) -> list[Violation]:
    found = []
    for watch in watches:
        since, rest = watch.since, watch.events
        if not since:
            since, rest, wrong = _initial(watch, truth)
            found += wrong
            if wrong:
                continue
        found += _gapless(watch, since, rest, truth)[:1]  # the first violation causes the others
    return found


def _gapless(watch: Watched, since: int, events: list[Event], truth: Truth) -> list[Violation]:
    changes = truth.changes[watch.kind]
    index = truth.after(watch.kind, since)
    name = f"a watch of {watch.kind} by {watch.client}, from {watch.since},"
    last = since
    for event in events:
        revision = event.seen.revision
        following = changes[index] if index < len(changes) else None
        if event.type == "BOOKMARK":
            if following is not None and following.after.revision <= revision:
                return [Violation("gap", f"{name} was at {revision} by a bookmark without having told of {following}")]
            if revision < last:
                return [Violation("order", f"{name} went back from {last} to {revision} by a bookmark")]
            last = revision
            continue
        if revision <= last and truth.exactly(watch.kind, event.name, revision) is not None:
            return [Violation("repeat", f"{name} told of {event} after {last}")]
        if following is None or revision < following.after.revision:
            return [Violation("never so", f"{name} told of {event}, which the store knows nothing of")]
        if revision > following.after.revision:
            return [Violation("gap", f"{name} told of {event} after {last}, and not of {following}")]
        if wrong := _differs(event, following):
            return [Violation("never so", f"{name} told of {event} as {wrong}: {following}")]
        last, index = revision, index + 1
    return []


def _differs(event: Event, change: Change) -> str:
    before, after = change.before, change.after
    kind = "DELETED" if after.mark is None else "ADDED" if before is None else "MODIFIED"
    if event.type != kind:
        return f"{event.type}, not {kind}"
    shown = before if after.mark is None else after
    assert shown is not None
    if (event.name, event.seen.mark, event.seen.count, event.seen.uid) != (
        change.name,
        shown.mark,
        shown.count,
        shown.uid,
    ):
        return "another object"
    return ""


def _initial(watch: Watched, truth: Truth) -> tuple[int, list[Event], list[Violation]]:
    """Return the revision at which the initial state of a watch ends, and the events after it."""
    state: dict[str, int] = {}
    for index, event in enumerate(watch.events):
        if event.initial_end:
            right = {
                name: version.revision for name, version in truth.snapshot(watch.kind, event.seen.revision).items()
            }
            if state == right:
                return event.seen.revision, watch.events[index + 1 :], []
            what = (
                f"began with {sorted(state.items())}, where the store had {sorted(right.items())} at "
                f"{event.seen.revision}"
            )
            return 0, [], [Violation("torn list", f"a watch of {watch.kind} by {watch.client} {what}")]
        if event.type == "DELETED":
            state.pop(event.name, None)
        elif event.type != "BOOKMARK":
            state[event.name] = event.seen.revision
    return 0, [], []  # the watch ended before
