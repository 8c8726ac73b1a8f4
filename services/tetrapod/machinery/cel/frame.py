"""`Frame`: the state of one evaluation; a planned node is a function of it that gives the node's value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tetrapod.machinery.cel.errors import CostLimitExceeded, EvaluationError

MISSING: Final = object()
"""In the slot of a variable that the caller did not bind."""


class Frame:
    """`slots` holds the variables, those of comprehensions too; `cost` is what was spent."""

    __slots__ = ("cost", "limit", "slots")

    def __init__(self, slots: list[Any], limit: int) -> None:
        self.slots = slots
        self.limit = limit
        self.cost = 0

    def spend(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded


class Failed:
    """In the slot of an accumulator whose step failed: the fold goes on, since a later step may not want it."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


Eval: TypeAlias = Callable[[Frame], Any]


def no_such_attribute(name: str) -> EvaluationError:
    return EvaluationError(f"no such attribute(s): {name}")
