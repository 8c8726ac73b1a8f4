"""Linearizability, of each key and of all together: each operation took effect at one moment between its beginning and its end.

The moments are revisions. A write's is known. A consistent read, or a refusal that tells of the state (AlreadyExists, NotFound,
Conflict), may have been at any revision at which what it says was so. The operations are taken by their ends, and each is given the
earliest moment that is no earlier than those of all that had ended before it began: this makes the least demands on what follows, so
that where it finds none there is none (operations that overlap may be in either order, those that do not may not).
An unknown write that the store has is one that never ended; one that the store has not was never made.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from chaos.checker.violation import Violation
from chaos.checker.writes import deletion_of, effects
from chaos.history import WRITES, Operation, Outcome, Verb
from chaos.truth import FOR_EVER, Spans, Truth


class _Floor:
    """The latest moment of all operations that had ended by some time, and whose it was."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._moments: list[tuple[int, Operation | None]] = []

    def before(self, time: float) -> tuple[int, Operation | None]:
        index = bisect.bisect_left(self._ends, time)
        return self._moments[index - 1] if index else (0, None)

    def ended(self, operation: Operation, moment: int) -> None:
        """To be told in the order of ends."""
        if not self._moments or moment > self._moments[-1][0]:
            self._ends.append(operation.ended)
            self._moments.append((moment, operation))


def check_order(operations: Iterable[Operation], truth: Truth) -> list[Violation]:
    found = []
    floor = _Floor()
    made = effects(truth)
    for operation in sorted(operations, key=lambda operation: operation.ended):
        least, whose = floor.before(operation.began)
        if operation.verb in WRITES and operation.outcome is not Outcome.REFUSED:
            revision = made.get(operation.mark) if operation.verb is not Verb.DELETE else deletion_of(operation, truth)
            if revision is None:
                continue
            if revision <= least:
                found.append(Violation("order", f"{operation} took effect at {revision}, before {whose}, of {least}, had ended"))
                continue
            floor.ended(operation, revision)
        elif (spans := _possible(operation, truth)) is not None:
            moment = spans.first_from(least)
            if moment is None:
                found.append(Violation("stale", f"{operation} showed what was no more so at {least}, when {whose} had ended"))
                continue
            floor.ended(operation, moment)
    return found


def _possible(operation: Operation, truth: Truth) -> Spans | None:
    """When what an answer says was so; None: it says nothing."""
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
