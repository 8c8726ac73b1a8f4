"""The state of one evaluation (`Frame`).

The planner turns each node into a function from a frame to the node's value.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tetrapod.machinery.cel.errors import CostLimitExceeded, EvaluationError
from tetrapod.machinery.failure import Failure
from tetrapod.machinery.long_work import TakesTooLong

MISSING: Final = object()
"""The value in the slot of a variable to which the caller gave no value."""


class Frame:
    """The state of one evaluation, which all evaluation functions receive.

    Attributes:
        slots: the values of the variables, including those of comprehensions. The planner gives each variable an index.
        cost: the cost so far.
        limit: the highest cost; `spend` raises CostLimitExceeded beyond it.
        deadline: the time, by `time.perf_counter`, after which `check_time` raises TakesTooLong; infinite for none.
    """

    __slots__ = ("cost", "deadline", "limit", "slots")

    def __init__(self, slots: list[Any], limit: int, deadline: float = math.inf) -> None:
        self.slots = slots
        self.limit = limit
        self.deadline = deadline
        self.cost = 0

    def spend(self, cost: int) -> None:
        """Add to the cost of the evaluation.

        Raises:
            CostLimitExceeded: the cost exceeds the limit.
        """
        self.cost += cost
        if self.cost > self.limit:
            raise CostLimitExceeded

    def check_time(self, seconds: float = 0.0) -> None:
        """Check that a step of the evaluation that takes `seconds` ends before the deadline.

        Raises:
            TakesTooLong: it ends later.
        """
        if time.perf_counter() + seconds > self.deadline:
            raise TakesTooLong


class Failed:
    """The value that an accumulator gets in `Frame.slots` if a step of its comprehension fails.

    The comprehension continues, because a later step may not read the accumulator. Reading it raises `failure`.

    Args:
        error: the error of the step.
    """

    __slots__ = ("failure",)

    def __init__(self, error: EvaluationError) -> None:
        self.failure = Failure(error)


Eval: TypeAlias = Callable[[Frame], Any]


def no_such_attribute(name: str) -> EvaluationError:
    """Return the error for the use of a variable that has no value."""
    return EvaluationError(f"no such attribute(s): {name}")
