"""`Run`: the state of the validation of one custom resource against CEL rules, and the cost and time that it may take.

cel_validation.py has the rules and the traversal of the object.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.long_work import TakesTooLong, is_limited

if TYPE_CHECKING:
    from tetrapod.machinery.cel.environment import Program

BUDGET: Final = 10_000_000
_QUICK_COST: Final = 100_000
"""The CEL cost that may be spent on the event loop, equivalent to about twenty milliseconds."""
_QUICK_TEXT: Final = 2_000
_ENGINE: Final = "tetrapod.machinery.cel.environment"


@dataclass(slots=True)
class Run:
    """The state of the validation of one object: its errors and warnings, and the remaining cost budget.

    A validation that runs on the event loop (`long_work.on_event_loop`) raises TakesTooLong instead of taking long.

    Attributes:
        budget: the CEL cost that may still be spent; negative after the validation has ended early.
        unsuited: whether the new or the existing object may have values of other types than the schema declares.
        errors: the errors so far.
        warnings: the failures that ratcheting tolerates, because the update did not change the failing value.
        compiled: the number of characters of the rules that this run had to compile.
    """

    budget: int = BUDGET
    unsuited: bool = False
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    compiled: int = 0
    _on_loop: bool = field(default_factory=is_limited)

    def compiles(self, rules: list[Object]) -> None:
        """Count the characters of rules that are about to be compiled.

        Args:
            rules: the entries of x-kubernetes-validations.

        Raises:
            TakesTooLong: the run is on the event loop, and compiling the rules takes too long for it.
        """
        self.compiled += sum(len(rule.get("rule") or "") + len(rule.get("messageExpression") or "") for rule in rules)
        if self._on_loop and (self.compiled > _QUICK_TEXT or _ENGINE not in sys.modules):
            raise TakesTooLong

    def evaluate(self, program: Program, values: dict[str, Any]) -> tuple[Any, Exception | None, int]:
        """Evaluate a program, and return its value, its error and the cost. One of value and error is None.

        The cost is not subtracted from the budget.

        Args:
            program: the compiled rule or messageExpression.
            values: the values of its CEL variables by name.

        Raises:
            TakesTooLong: the run is on the event loop, and the evaluation exceeds the cost or the time allowed there.
        """
        from tetrapod.machinery.cel.environment import PER_CALL_LIMIT, Meter
        from tetrapod.machinery.cel.errors import CelError, CostLimitExceeded

        meter, quick_budget = Meter(), self.budget - BUDGET + _QUICK_COST
        limit = max(min(quick_budget, PER_CALL_LIMIT), 0) if self._on_loop else PER_CALL_LIMIT
        try:
            return program.evaluate(values, meter, limit), None, meter.cost
        except CostLimitExceeded as error:
            if limit < PER_CALL_LIMIT:
                raise TakesTooLong from None
            return None, error, meter.cost
        except CelError as error:
            return None, error, meter.cost
