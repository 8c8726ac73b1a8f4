"""The operations of the clients and their results. All times are from the clock of the clients' process."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from chaos.kinds import COUNT, MARK


class Verb(StrEnum):
    CREATE = "create"
    UPDATE = "update"  # with the resourceVersion as its precondition
    REPLACE = "replace"  # without a precondition
    PATCH = "patch"
    DELETE = "delete"
    GET = "get"
    LIST = "list"


WRITES = (Verb.CREATE, Verb.UPDATE, Verb.REPLACE, Verb.PATCH, Verb.DELETE)


class Outcome(StrEnum):
    DONE = "done"
    REJECTED = "rejected"  # it certainly had no effect
    UNKNOWN = "unknown"  # no response, or a server error


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as a client has seen it."""

    revision: int
    mark: str
    count: int = 0
    uid: str = ""

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Seen:
        metadata = item["metadata"]
        annotations = metadata.get("annotations") or {}
        return cls(
            int(metadata["resourceVersion"]),
            annotations.get(MARK, ""),
            int(annotations.get(COUNT, 0)),
            metadata.get("uid", ""),
        )


@dataclass(slots=True)
class Operation:
    client: str
    verb: Verb
    kind: str
    name: str  # "" for a list
    began: float
    ended: float = math.inf
    outcome: Outcome = Outcome.UNKNOWN
    status: int = 0  # the HTTP status; 0 without a response
    mark: str = ""  # the mark that a write leaves
    expected: int = 0  # the resourceVersion in the precondition of a write
    cached: bool = False  # the read may return an old state
    at_least: int = 0  # the read may not return a state older than this
    revision: int = 0  # of the written object, or of a list
    seen: Seen | None = None  # for a get
    items: dict[str, Seen] = field(default_factory=dict)  # for a list
    uid: str = ""  # of the deleted object
    reason: str = ""  # of a failure

    def __str__(self) -> str:
        return (
            f"{self.client}: {self.verb} {self.kind}/{self.name} ({self.began:.3f}..{self.ended:.3f} "
            f"{self.outcome} {self.status})"
        )


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    name: str
    seen: Seen
    initial_end: bool = False  # for a bookmark: the state at its revision includes everything before


@dataclass(slots=True)
class Watched:
    """One watch from its start to its end. `since` is 0 if it began with the current state (sendInitialEvents)."""

    client: str
    kind: str
    since: int
    began: float
    events: list[Event] = field(default_factory=list)
    expired: bool = False  # 410, Expired

    @property
    def reached(self) -> int:
        return self.events[-1].seen.revision if self.events else self.since


class History:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.operations: list[Operation] = []
        self.watches: list[Watched] = []
        self.relists: dict[str, int] = {}

    def begin(self, client: str, verb: Verb, kind: str, name: str = "", **more: Any) -> Operation:
        operation = Operation(client, verb, kind, name, self.clock(), **more)
        self.operations.append(operation)
        return operation

    def dump(self, path: Path) -> None:
        """Write the history as lines of JSON, for debugging."""
        with path.open("w") as out:
            out.writelines(json.dumps(dataclasses.asdict(operation)) + "\n" for operation in self.operations)
            out.writelines(json.dumps(dataclasses.asdict(watch)) + "\n" for watch in self.watches)
