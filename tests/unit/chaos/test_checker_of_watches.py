"""Tests of the checker of watches: it finds planted gaps, repetitions and altered events, and none in a correct
watch.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.checker.watches import check_watches
from chaos.history import Event
from unit.chaos.histories import bookmark, event, events, truth, watch


def rules(told: list[Event], since: int = 9) -> set[str]:
    return {found.rule for found in check_watches([watch(told, since)], truth())}


def test_a_correct_history_has_no_violations() -> None:
    assert rules(events()) == set()
    assert rules(events()[2:], since=11) == set()
    assert rules(events()[:3]) == set()  # the watch was ended, and another one continues it
    assert rules([]) == set()


def test_a_watch_may_begin_with_the_state() -> None:
    told = [
        event("ADDED", 14, "patch", 1),
        event("ADDED", 11, "other", uid="u2", name="b"),
        bookmark(14, initial_end=True),
        *events()[5:],
    ]
    assert rules(told, since=0) == set()
    assert rules(told[:1], since=0) == set()  # the watch ended before its initial state was complete


def _without(index: int) -> Callable[[list[Event]], list[Event]]:
    return lambda told: told[:index] + told[index + 1 :]


PLANTED: dict[str, tuple[Callable[[list[Event]], list[Event]], str]] = {
    "a gap": (_without(2), "gap"),
    "a gap before a bookmark": (lambda told: [*told[:3], bookmark(14)], "gap"),
    "a gap at a deletion": (_without(5), "gap"),
    "a repeat": (lambda told: [*told[:3], *told[2:]], "repeat"),
    "a repeat after a bookmark": (lambda told: [*told[:5], told[3], *told[5:]], "repeat"),
    "another order": (lambda told: [told[0], told[2], told[1], *told[3:]], "gap"),
    "a bookmark that goes back": (lambda told: [*told[:7], bookmark(15)], "order"),
    "an event of nothing": (lambda told: [told[0], event("MODIFIED", 10, "x"), *told[1:]], "repeat"),
    "another object": (lambda told: [event("ADDED", 10, "not this"), *told[1:]], "never so"),
    "another type": (lambda told: [event("MODIFIED", 10, "create"), *told[1:]], "never so"),
    "a revision that never was": (lambda told: [*told, event("MODIFIED", 99, "x")], "never so"),
    "a deletion that shows what was there before the last change": (
        lambda told: [*told[:5], event("DELETED", 15, "update", 1)],
        "never so",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_planted_violations_are_found(what: str) -> None:
    plant, rule = PLANTED[what]
    assert rules(plant(events())) == {rule}


def test_a_state_to_begin_with_that_never_was_is_found() -> None:
    torn = [
        event("ADDED", 12, "update", 1),
        event("ADDED", 11, "other", uid="u2", name="b"),
        bookmark(14, initial_end=True),
    ]
    assert rules(torn, since=0) == {"torn list"}
    assert rules(torn[1:], since=0) == {"torn list"}
