"""Linearizability of each key and of all keys: each operation took effect at one moment between its start and its end.

The moments are revisions. That of a write is known. A consistent read may have taken effect at any revision at which
its result was true. So may a rejection that reveals the state (AlreadyExists, NotFound, Conflict).

Operations are visited in the order of their ends. Each is assigned the earliest possible moment that is not before the
moments of all operations that ended before it started. This restricts later operations the least: if none is found,
none exists. Overlapping operations may take effect in either order, others may not.

A write of unknown outcome counts as an operation without an end if the store has it, and is ignored otherwise.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from chaos.checker.violation import Violation
from chaos.checker.writes import deletion_of, effects
from chaos.history import WRITES, Operation, Outcome, Verb
from chaos.truth import FOR_EVER, Spans, Truth


class _Floor:
    """The latest moment of all operations that had ended at a given time, and the operation that it belongs to."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._moments: list[tuple[int, Operation | None]] = []

    def before(self, time: float) -> tuple[int, Operation | None]:
        index = bisect.bisect_left(self._ends, time)
        return self._moments[index - 1] if index else (0, None)

    def ended(self, operation: Operation, moment: int) -> None:
        """Add an operation. Call it in the order of their ends."""
        if not self._moments or moment > self._moments[-1][0]:
            self._ends.append(operation.ended)
            self._moments.append((moment, operation))


def check_order(operations: Iterable[Operation], truth: Truth) -> list[Violation]:
    found = []
    floor = _Floor()
    made = effects(truth)
    for operation in sorted(operations, key=lambda operation: operation.ended):
        least, whose = floor.before(operation.began)
        if operation.verb in WRITES and operation.outcome is not Outcome.REJECTED:
            revision = made.get(operation.mark) if operation.verb is not Verb.DELETE else deletion_of(operation, truth)
            if revision is None:
                continue
            if revision <= least:
                found.append(
                    Violation("order", f"{operation} took effect at {revision}, before {whose}, of {least}, had ended")
                )
                continue
            floor.ended(operation, revision)
        elif (spans := _possible(operation, truth)) is not None:
            moment = spans.first_from(least)
            if moment is None:
                found.append(
                    Violation("stale", f"{operation} showed what was no more so at {least}, when {whose} had ended")
                )
                continue
            floor.ended(operation, moment)
    return found


def _possible(operation: Operation, truth: Truth) -> Spans | None:
    """Return the revisions at which a response was true, or None if it reveals nothing."""
    where = operation.kind, operation.name
    if operation.cached or operation.at_least or operation.outcome is Outcome.UNKNOWN:
        return None
    if operation.outcome is Outcome.DONE:
        if operation.verb is Verb.LIST:
            return Spans((operation.revision, operation.revision))
        return None if operation.seen is None else Spans(truth.while_it_was(*where, operation.seen.revision))
    if operation.status == 404:
        return truth.absent(*where)
    if operation.status == 409 and operation.verb is Verb.CREATE:
        return truth.present(*where)
    if operation.status == 409 and operation.expected and truth.exactly(*where, operation.expected) is not None:
        first, last = truth.while_it_was(*where, operation.expected)
        return Spans((0, first - 1), (last + 1, FOR_EVER))
    return None
