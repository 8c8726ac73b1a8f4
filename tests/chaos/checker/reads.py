"""Check that each read returned a state that existed: objects as at their revision, lists as at theirs, and nothing
from the future.
"""

from __future__ import annotations

from collections.abc import Iterable

from chaos.checker.violation import Violation
from chaos.history import Operation, Outcome, Seen, Verb
from chaos.truth import Truth


def check_reads(operations: Iterable[Operation], truth: Truth) -> list[Violation]:
    operations = list(operations)
    begun = {operation.mark: operation.began for operation in operations if operation.mark}
    found = []
    for operation in operations:
        if operation.outcome is Outcome.DONE and operation.verb is Verb.GET:
            assert operation.seen is not None
            found += _shown(operation, operation.name, operation.seen, truth, begun)
            if truth.while_it_was(operation.kind, operation.name, operation.seen.revision)[1] < operation.at_least:
                found.append(
                    Violation("stale", f"{operation} asked for {operation.at_least} and saw {operation.seen.revision}")
                )
        elif operation.outcome is Outcome.REJECTED and operation.status == 404 and operation.at_least:
            if truth.absent(operation.kind, operation.name).first_from(operation.at_least) is None:
                found.append(Violation("stale", f"{operation} asked for {operation.at_least} and saw nothing"))
        elif operation.outcome is Outcome.DONE and operation.verb is Verb.LIST:
            found += _snapshot(operation, truth, begun)
    return found


def _snapshot(operation: Operation, truth: Truth, begun: dict[str, float]) -> list[Violation]:
    if operation.revision < operation.at_least:
        return [Violation("stale", f"{operation} asked for {operation.at_least} and is of {operation.revision}")]
    right = truth.snapshot(operation.kind, operation.revision)
    found = []
    for name, seen in operation.items.items():
        found += _shown(operation, name, seen, truth, begun)
    if {name: version.revision for name, version in right.items()} != {
        name: seen.revision for name, seen in operation.items.items()
    }:
        lacks, extra = sorted(right.keys() - operation.items.keys()), sorted(operation.items.keys() - right.keys())
        differ = sorted(
            name
            for name in right.keys() & operation.items.keys()
            if right[name].revision != operation.items[name].revision
        )
        what = f"is no snapshot of {operation.revision}: it lacks {lacks}, has {extra} too, and differs in {differ}"
        found.append(Violation("torn list", f"{operation} {what}"))
    return found


def _shown(operation: Operation, name: str, seen: Seen, truth: Truth, begun: dict[str, float]) -> list[Violation]:
    version = truth.exactly(operation.kind, name, seen.revision)
    if version is None or not version.shows(seen):
        return [Violation("never so", f"{operation} saw {name} as {seen}, where the store has {version}")]
    if begun.get(seen.mark, 0) > operation.ended:
        return [Violation("never so", f"{operation} saw {seen} of {name}, which nobody had written yet")]
    return []
