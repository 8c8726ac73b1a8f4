"""`Activation`: the variables with which a policy's expressions are evaluated for one request, and their cost budget.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/activation.go, composition.go (lazy variables)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.generic.admission.policy.authorizer_variable import AuthorizerVariables
from tetrapod.generic.admission.policy.environment import VARIABLES
from tetrapod.generic.admission.policy.expressions import Compiled
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery.cel.environment import PER_CALL_LIMIT, Meter, Program
from tetrapod.machinery.cel.errors import CelError, CostLimitExceeded, EvaluationError, Interrupt
from tetrapod.machinery.cel.values import LazyFields
from tetrapod.machinery.long_work import QUICK_SECONDS, TakesTooLong, on_event_loop

QUICK_COST: Final = 20_000
"""The CEL cost that the expressions of one activation may spend on the event loop: about four milliseconds. Expressions
that cost more are evaluated again in a thread.
"""
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class BudgetExceeded(Exception):
    """The expressions of a policy have together exceeded the cost budget. The text is upstream's."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of evaluating one CEL expression for one request.

    Attributes:
        value: the value; None if the evaluation failed.
        error: the error text; "" if there is a value.
        seconds: the evaluation time in seconds.
    """

    value: Any = None
    error: str = ""
    seconds: float = 0.0


NOTHING: Final = Outcome()


class Activation:
    """Evaluates a list of CEL expressions for one request, with the same values of the variables.

    Each composed variable (`variables.NAME`) is computed when an expression first uses it, at most once.

    Args:
        bindings: the values of the other variables, such as `object` and `request`.
        variables: the compiled expressions of composed variables, by name.
        authorizer_variables: provides the authorizer variables; None if expressions may not use them.
        large: whether the objects are large. The expressions are then evaluated in a thread from the start.
    """

    def __init__(
        self,
        bindings: Mapping[str, Any],
        variables: Mapping[str, Compiled],
        authorizer_variables: AuthorizerVariables | None,
        *,
        large: bool,
    ) -> None:
        self._bindings = dict(bindings)
        self._authorizer_variables = authorizer_variables
        if authorizer_variables is not None:
            self._bindings |= authorizer_variables.bindings
        self._variable_cost = 0
        self._quick = QUICK_COST  # what may still be spent on the event loop
        self._quick_seconds = QUICK_SECONDS
        self._in_thread = large
        lazy = {name: self._variable(name, compiled) for name, compiled in variables.items()}
        self._bindings["variables"] = LazyFields(VARIABLES, lazy)

    async def all(self, listed: Sequence[Compiled | None], budget: int) -> tuple[list[Outcome], int]:
        """Return the outcomes of expressions, in order, and the remaining budget.

        Args:
            listed: the expressions. One that is not configured is None, and its outcome has the value None.
            budget: the cost that all of them together may have.

        Raises:
            BudgetExceeded: the budget is exhausted.
            StatusError: 503, an authorization check in an expression could not be decided.
        """
        outcomes = []
        for compiled in listed:
            outcome, budget = (NOTHING, budget) if compiled is None else await self.evaluate_one(compiled, budget)
            outcomes.append(outcome)
        return outcomes, budget

    async def evaluate_one(self, compiled: Compiled, budget: int) -> tuple[Outcome, int]:
        """Evaluate one expression. Return its outcome, which may be an error, and the remaining budget.

        Args:
            compiled: the expression. A compile error is its outcome.
            budget: the cost that it may have, with the variables that it is the first to use.

        Raises:
            BudgetExceeded: the budget is exhausted.
            StatusError: 503, an authorization check in the expression could not be decided.
        """
        if compiled.program is None:
            return Outcome(error=f"compilation error: {compiled.error}"), budget
        started = time.perf_counter()
        while True:
            meter = Meter()
            try:
                value = await offloaded(self._in_thread, self._run, compiled.program, meter)
                outcome = Outcome(value, seconds=time.perf_counter() - started)
            except TakesTooLong:
                self._in_thread = True
                continue
            except Interrupt as interrupt:
                assert self._authorizer_variables is not None
                await self._authorizer_variables.settle(interrupt)
                continue
            except CelError as error:
                text = f"expression '{compiled.expression}' resulted in error: {error}"
                outcome = Outcome(error=text, seconds=time.perf_counter() - started)
            break
        budget -= self._variable_cost + meter.cost
        self._variable_cost = 0
        if budget < 0:
            raise BudgetExceeded
        return outcome, budget

    def _run(self, program: Program, meter: Meter) -> Any:
        """Evaluate a program and return its value.

        Args:
            program: the program.
            meter: counts the cost, also when the evaluation fails.

        Raises:
            TakesTooLong: the evaluation costs more than may be spent on the event loop, on which it runs.
            CelError: the value is an error, or the evaluation costs more than an expression may.
        """
        limit = PER_CALL_LIMIT if self._in_thread else min(self._quick, PER_CALL_LIMIT)
        started = time.perf_counter()
        try:
            if self._in_thread:
                return program.evaluate(self._bindings, meter, limit)
            with on_event_loop(self._quick_seconds):
                return program.evaluate(self._bindings, meter, limit)
        except CostLimitExceeded:
            if limit < PER_CALL_LIMIT:
                raise TakesTooLong from None
            raise
        finally:
            self._quick = max(self._quick - meter.cost, 0)
            self._quick_seconds -= time.perf_counter() - started

    def _variable(self, name: str, compiled: Compiled) -> Callable[[], Any]:
        failed: list[str] = []

        def compute() -> Any:
            if failed:
                raise EvaluationError(failed[0])
            if compiled.program is None:
                failed.append(f'composited variable "{name}" fails to compile: {compiled.error}')
                raise EvaluationError(failed[0])
            meter = Meter()
            try:
                value = self._run(compiled.program, meter)
            except Interrupt:
                raise
            except CelError as error:
                self._variable_cost += meter.cost
                failed.append(f'composited variable "{name}" fails to evaluate: {error}')
                raise EvaluationError(failed[0]) from None
            self._variable_cost += meter.cost
            return value

        return compute
