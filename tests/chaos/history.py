"""What the clients did and saw. All times are of one clock: the recorder's, which is in the clients' process."""

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
    REPLACE = "replace"  # without
    PATCH = "patch"
    DELETE = "delete"
    GET = "get"
    LIST = "list"


WRITES = (Verb.CREATE, Verb.UPDATE, Verb.REPLACE, Verb.PATCH, Verb.DELETE)


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"  # it had no effect, for certain
    UNKNOWN = "unknown"  # nobody answered, or it was an error of the server


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as somebody was shown it."""

    revision: int
    mark: str
    count: int = 0
    uid: str = ""

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> Seen:
        metadata = item["metadata"]
        annotations = metadata.get("annotations") or {}
        return cls(int(metadata["resourceVersion"]), annotations.get(MARK, ""), int(annotations.get(COUNT, 0)), metadata.get("uid", ""))


@dataclass(slots=True)
class Operation:
    client: str
    verb: Verb
    kind: str
    name: str  # "" of a list
    began: float
    ended: float = math.inf
    outcome: Outcome = Outcome.UNKNOWN
    status: int = 0  # HTTP's; 0: no answer
    mark: str = ""  # what a write leaves
    expected: int = 0  # the resourceVersion that a write is made on, as its precondition
    cached: bool = False  # a read that may be old
    at_least: int = 0  # a read that may be no older than this
    revision: int = 0  # of what was written, or of a list
    seen: Seen | None = None  # by a get
    items: dict[str, Seen] = field(default_factory=dict)  # by a list
    uid: str = ""  # of what was deleted
    said: str = ""  # why not

    def __str__(self) -> str:
        return f"{self.client}: {self.verb} {self.kind}/{self.name} ({self.began:.3f}..{self.ended:.3f} {self.outcome} {self.status})"


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    name: str
    seen: Seen
    initial_end: bool = False  # a bookmark: all that came before is the state at its revision


@dataclass(slots=True)
class Watched:
    """One watch from its beginning to its end. `since` 0: it began with the state (sendInitialEvents)."""

    client: str
    kind: str
    since: int
    began: float
    events: list[Event] = field(default_factory=list)
    expired: bool = False  # 410: too old

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
        """Lines of JSON, to look into what went wrong."""
        with path.open("w") as out:
            out.writelines(json.dumps(dataclasses.asdict(operation)) + "\n" for operation in self.operations)
            out.writelines(json.dumps(dataclasses.asdict(watch)) + "\n" for watch in self.watches)
