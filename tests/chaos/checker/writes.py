"""Check that no acknowledged write is lost, invented or applied twice, and that each was applied to the object that its
precondition names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from chaos.checker.violation import Violation
from chaos.history import Operation, Outcome, Verb
from chaos.kinds import BY_NAME, CONTROLLERS_OWN
from chaos.truth import Change, Truth


def effects(truth: Truth) -> dict[str, int]:
    """Return the revision of each mark."""
    return {
        version.mark: version.revision
        for versions in truth.versions.values()
        for version in reversed(versions)
        if version.mark is not None
    }


def deletion_of(operation: Operation, truth: Truth) -> int | None:
    """Return the revision of each acknowledged deletion, by the uid of the deleted object."""
    if operation.outcome is not Outcome.DONE:
        return None
    versions = truth.versions.get((operation.kind, operation.name), [])
    return next(
        (version.revision for version in versions if version.mark is None and version.uid == operation.uid), None
    )


def check_writes(operations: Iterable[Operation], truth: Truth) -> list[Violation]:
    operations = list(operations)
    return _acknowledged(operations, truth) + _accounted_for(operations, truth)


def _acknowledged(operations: list[Operation], truth: Truth) -> list[Violation]:
    found = []
    claimed: Counter[str] = Counter()
    for operation in operations:
        if operation.outcome is not Outcome.DONE or operation.verb in (Verb.GET, Verb.LIST):
            continue
        if operation.verb is Verb.DELETE:
            claimed[operation.uid] += 1
            if deletion_of(operation, truth) is None:
                found.append(
                    Violation(
                        "lost write", f"{operation} was acknowledged, but the store has no deletion of {operation.uid}"
                    )
                )
            continue
        version = truth.exactly(operation.kind, operation.name, operation.revision)
        if version is None or version.mark != operation.mark:
            found.append(
                Violation(
                    "lost write",
                    f"{operation} was acknowledged at revision {operation.revision}, where the store has {version}",
                )
            )
    found += [
        Violation("double", f"{uid} was deleted for {number} clients") for uid, number in claimed.items() if number > 1
    ]
    return found


def _accounted_for(operations: list[Operation], truth: Truth) -> list[Violation]:
    """Check that a client requested each change of the store and was not told that it had failed."""
    by_mark = {operation.mark: operation for operation in operations if operation.mark}
    deleted = {
        operation.uid for operation in operations if operation.verb is Verb.DELETE and operation.outcome is Outcome.DONE
    }
    unknown: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.verb is Verb.DELETE and operation.outcome is Outcome.UNKNOWN:
            unknown[operation.kind, operation.name].append(operation)
    made = effects(truth)
    found = []
    for kind, changes in truth.changes.items():
        for change in changes:
            after = change.after
            if change.name in CONTROLLERS_OWN:
                continue
            if after.mark is not None and made[after.mark] != after.revision:
                found.append(
                    Violation("double", f"{change.name} at {after.revision} was made at {made[after.mark]} already")
                )
            elif after.mark is not None:
                found += _wrong(change, by_mark.get(after.mark))
            elif after.uid not in deleted:
                revision = 0 if change.before is None else change.before.revision
                may_have = [
                    operation for operation in unknown[kind, change.name] if operation.expected in (0, revision)
                ]
                if not may_have:
                    found.append(
                        Violation(
                            "made up", f"{kind}/{change.name} was deleted at {after.revision}, which nobody asked for"
                        )
                    )
                else:
                    unknown[kind, change.name].remove(max(may_have, key=lambda operation: operation.expected))
    return found


def _wrong(change: Change, operation: Operation | None) -> list[Violation]:
    before, after = change.before, change.after
    what = f"{change.name} at {after.revision}"
    if operation is None or operation.name != change.name:
        return [Violation("made up", f"{what} has the mark {after.mark}, which nobody wrote there")]
    if operation.outcome is Outcome.REJECTED:
        return [Violation("made up", f"{operation} was rejected ({operation.reason}), but made {what}")]
    if operation.outcome is Outcome.DONE and operation.revision != after.revision:
        return [Violation("double", f"{operation} was acknowledged at {operation.revision}, and made {what} too")]
    on = 0 if before is None else before.revision
    if operation.verb is Verb.CREATE and before is not None:
        return [Violation("lost update", f"{operation} made {what} over what was there at {on}")]
    # upstream does not compare the resource version here
    recreated = before is None and BY_NAME[operation.kind].creates_on_update
    if operation.verb is Verb.UPDATE and operation.expected != on and not recreated:
        return [
            Violation("lost update", f"{operation} was to be made on {operation.expected}, and made {what} on {on}")
        ]
    if operation.verb is Verb.PATCH and (before is None or before.count != after.count):
        return [
            Violation("lost update", f"{operation} made {what}, and changed what it does not name: {before} to {after}")
        ]
    return []
