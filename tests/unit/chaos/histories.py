"""A small correct history to plant bugs in: one object is created, updated, patched, deleted and created again, and
read and watched.
"""

from __future__ import annotations

import math
from typing import Any

from chaos.history import Event, Operation, Outcome, Seen, Verb, Watched
from chaos.truth import Truth, Version

KIND = "configmaps"
VERSIONS = (
    ("a", Version(10, "create", 0, "u1")),
    ("b", Version(11, "other", 0, "u2")),
    ("a", Version(12, "update", 1, "u1")),
    ("a", Version(14, "patch", 1, "u1")),
    ("a", Version(15, None)),
    ("a", Version(18, "again", 0, "u3")),
)


def truth() -> Truth:
    made = Truth()
    for name, version in VERSIONS:
        made.add(KIND, name, version)
    return made


def op(verb: Verb, began: float, ended: float = math.inf, name: str = "a", **more: Any) -> Operation:
    operation = Operation(
        "client", verb, KIND, name, began, ended, outcome=Outcome.DONE if ended < math.inf else Outcome.UNKNOWN
    )
    for field, value in more.items():
        setattr(operation, field, value)
    if operation.outcome is Outcome.REJECTED or operation.status:
        assert operation.ended < math.inf
    return operation


def rejected(verb: Verb, began: float, ended: float, status: int, **more: Any) -> Operation:
    return op(verb, began, ended, outcome=Outcome.REJECTED, status=status, **more)


def seen(revision: int, mark: str, count: int = 0, uid: str = "u1") -> Seen:
    return Seen(revision, mark, count, uid)


def writes() -> list[Operation]:
    """Each operation takes a second, one after the other."""
    return [
        op(Verb.CREATE, 0, 1, mark="create", revision=10),
        op(Verb.CREATE, 0, 1, name="b", mark="other", revision=11),
        op(Verb.UPDATE, 2, 3, mark="update", expected=10, revision=12),
        op(Verb.PATCH, 4, 5, mark="patch", revision=14),
        op(Verb.DELETE, 6, 7, uid="u1"),
        op(Verb.CREATE, 8, 9, mark="again", revision=18),
    ]


def event(kind: str, revision: int, mark: str, count: int = 0, uid: str = "u1", name: str = "a") -> Event:
    return Event(kind, name, Seen(revision, mark, count, uid))


def bookmark(revision: int, *, initial_end: bool = False) -> Event:
    return Event("BOOKMARK", "", Seen(revision, ""), initial_end)


def events() -> list[Event]:
    return [
        event("ADDED", 10, "create"),
        event("ADDED", 11, "other", uid="u2", name="b"),
        event("MODIFIED", 12, "update", 1),
        event("MODIFIED", 14, "patch", 1),
        bookmark(14),
        event("DELETED", 15, "patch", 1),
        bookmark(17),
        event("ADDED", 18, "again", uid="u3"),
    ]


def watch(told: list[Event], since: int = 9) -> Watched:
    return Watched("watcher", KIND, since, 0.0, told)
