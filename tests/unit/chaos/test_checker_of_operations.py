"""Tests of the checker of operations: it finds planted violations in writes and reads, and none in a correct
history.
"""

from __future__ import annotations

import math

import pytest

from chaos.checker.order import check_order
from chaos.checker.reads import check_reads
from chaos.checker.writes import check_writes
from chaos.history import Operation, Outcome, Verb
from unit.chaos.histories import KIND, VERSIONS, op, rejected, seen, truth, writes


def rules(operations: list[Operation]) -> set[str]:
    store = truth()
    return {
        found.rule
        for found in (
            *check_writes(operations, store),
            *check_reads(operations, store),
            *check_order(operations, store),
        )
    }


READS = [
    op(Verb.GET, 1.2, 1.4, seen=seen(10, "create")),
    op(Verb.GET, 2.2, 2.4, seen=seen(10, "create")),  # the update is in progress: the state before it
    op(Verb.GET, 2.2, 2.4, seen=seen(12, "update", 1)),  # or after it
    op(Verb.GET, 3.5, 3.6, seen=seen(10, "create"), cached=True),  # may be old
    # not older than that revision: it was current until 11
    op(Verb.GET, 3.5, 3.6, seen=seen(10, "create"), at_least=11),
    rejected(Verb.GET, 7.1, 7.2, 404),
    rejected(Verb.CREATE, 5.1, 5.2, 409, mark="in vain"),
    rejected(Verb.UPDATE, 5.1, 5.2, 409, mark="too late", expected=10),
    rejected(Verb.PATCH, 7.1, 7.2, 404, mark="nothing there"),
    op(Verb.LIST, 3.5, 3.9, name="", revision=13, items={"a": seen(12, "update", 1), "b": seen(11, "other", 0, "u2")}),
    op(Verb.LIST, 7.5, 7.9, name="", revision=15, items={"b": seen(11, "other", 0, "u2")}),
]


def test_a_correct_history_has_no_violations() -> None:
    assert rules(writes() + READS) == set()


def test_unknown_writes_may_have_been_made_or_not() -> None:
    operations = writes()
    operations[2] = op(Verb.UPDATE, 2, mark="update", expected=10)  # no response arrived, but the write was applied
    operations[4] = op(Verb.DELETE, 6)
    operations += [
        op(Verb.UPDATE, 2, mark="never made", expected=10),
        op(Verb.DELETE, 2),
        op(Verb.CREATE, 1, mark="neither"),
    ]
    assert rules(operations) == set()


PLANTED = {
    "an acknowledged write that the store has not": ([op(Verb.PATCH, 10, 11, mark="lost", revision=19)], "lost write"),
    "an acknowledged write where the store has another": (
        [op(Verb.PATCH, 4, 5, mark="mine", revision=14)],
        "lost write",
    ),
    "an acknowledged deletion that was none": ([op(Verb.DELETE, 10, 11, uid="u3")], "lost write"),
    "a deletion that two were told was theirs": ([op(Verb.DELETE, 6, 7, uid="u1")], "double"),
    "a read of what had been overwritten": ([op(Verb.GET, 3.1, 3.2, seen=seen(10, "create"))], "stale"),
    "a read of what had been deleted": ([op(Verb.GET, 7.1, 7.2, seen=seen(14, "patch", 1))], "stale"),
    # true after the deletion, which has not begun
    "nothing, where something was": ([rejected(Verb.GET, 5.1, 5.9, 404)], "order"),
    "nothing, to somebody who wrote": ([rejected(Verb.PATCH, 3.1, 5.9, 404, mark="x")], "order"),
    "AlreadyExists where nothing was": ([rejected(Verb.CREATE, 7.1, 7.9, 409, mark="x")], "order"),
    "nothing, where something is for good": ([rejected(Verb.GET, 10, 11, 404)], "stale"),
    "a conflict with nobody": ([rejected(Verb.UPDATE, 1.1, 1.9, 409, mark="x", expected=10)], "stale"),
    "a list that is older than what was known": (
        [
            op(
                Verb.LIST,
                5.1,
                5.2,
                name="",
                revision=13,
                items={"a": seen(12, "update", 1), "b": seen(11, "other", 0, "u2")},
            )
        ],
        "stale",
    ),
    "a list that lacks an object": (
        [op(Verb.LIST, 3.1, 3.9, name="", revision=13, items={"a": seen(12, "update", 1)})],
        "torn list",
    ),
    "a list of two moments": (
        [
            op(
                Verb.LIST,
                3.1,
                3.9,
                name="",
                revision=13,
                items={"a": seen(10, "create"), "b": seen(11, "other", 0, "u2")},
            )
        ],
        "torn list",
    ),
    "a read that is older than asked for": ([op(Verb.GET, 3.5, 3.6, seen=seen(10, "create"), at_least=12)], "stale"),
    "a value that never was": ([op(Verb.GET, 3.5, 3.6, seen=seen(12, "update", 2))], "never so"),
    "a read of the future": ([op(Verb.GET, 3.1, 3.2, seen=seen(14, "patch", 1))], "never so"),
    "an update on what was no more so": (
        [op(Verb.UPDATE, 2, 3, mark="update", expected=9, revision=12)],
        "lost update",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_planted_violations_are_found(what: str) -> None:
    operations, rule = PLANTED[what]
    made = {operation.mark for operation in operations}
    rest = [operation for operation in writes() if not operation.mark or operation.mark not in made]
    assert rule in rules(rest + READS + operations)


def test_an_unrequested_write_is_found() -> None:
    assert "made up" in rules(writes()[1:])
    assert "made up" in rules([operation for operation in writes() if operation.verb is not Verb.DELETE])


def test_a_rejected_write_that_was_made_is_found() -> None:
    operations = writes()
    operations[3] = rejected(Verb.PATCH, 4, 5, 409, mark="patch")
    assert "made up" in rules(operations)


def test_a_write_that_was_made_twice_is_found() -> None:
    store = truth()
    store.add(KIND, "a", VERSIONS[3][1].__class__(20, "patch", 0, "u3"))
    assert "double" in {found.rule for found in check_writes(writes(), store)}
    unanswered = writes()
    unanswered[3] = op(Verb.PATCH, 4, mark="patch")
    assert "double" in {found.rule for found in check_writes(unanswered, store)}


def test_a_patch_that_undoes_what_it_does_not_name_is_found() -> None:
    store = truth()
    store.add(KIND, "a", VERSIONS[3][1].__class__(20, "careless", 7, "u3"))
    operations = [*writes(), op(Verb.PATCH, 10, 11, mark="careless", revision=20)]
    assert "lost update" in {found.rule for found in check_writes(operations, store)}


def test_writes_in_an_order_that_cannot_be_are_found() -> None:
    operations = writes()
    operations[2].began, operations[2].ended = 20, 21  # it began after a later operation had ended
    assert "order" in rules(operations)


def test_a_write_whose_end_is_unknown_cannot_have_been_before_its_beginning() -> None:
    operations = writes()
    operations[2] = op(Verb.UPDATE, 20, math.inf, mark="update", expected=10)
    assert operations[2].outcome is Outcome.UNKNOWN
    assert "order" in rules(operations)
