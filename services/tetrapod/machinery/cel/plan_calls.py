"""Evaluation functions for calls: logical operators, membership, and functions with their costs.

A planned node (`Planned`) is a constant, an attribute, or an evaluation function, which returns the value of the node
given a `Frame`.

Upstream: cel-go interpreter/interpretable.go (evalAnd, evalOr, evalZeroArity...), decorators.go (set membership),
runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.frame import Eval, Frame
from tetrapod.machinery.cel.plan_results import Const, Planned, finished
from tetrapod.machinery.cel.runtime_costs import Args, Cost, depends_on_result
from tetrapod.machinery.cel.values import NONE, Optional, no_such_overload, shown
from tetrapod.machinery.failure import Failure

_SET_MEMBERS: Final = (str, int, float, bool, type(None))
_FAILED: Final = object()


def insert(*args: Any) -> Any:
    """Insert entries into a map in place, and return it. It is an accumulator, to which nothing else refers.

    Args:
        args: the map, and either a key and a value or a map of entries.

    Raises:
        EvaluationError: the map has an entry with such a key already.
    """
    target = args[0]
    for key, value in [args[1:]] if len(args) == 3 else list(args[1].items()):
        if key in target:
            raise EvaluationError(f"insert failed: key {shown(key)} already exists")
        target[key] = value
    return target


def with_pattern(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a regex function for calls with a constant pattern, which reports a text of a wrong type in another way.

    The error is a plain `no such overload`, because upstream replaces such a call by an optimized function that checks
    the text itself (OptOptimize).

    Args:
        run: the regex function, which is called with the text and further arguments.
    """

    def call(text: Any, *args: Any) -> Any:
        if not isinstance(text, str):
            raise no_such_overload()
        return run(text, *args)

    return call


def plan_logic(left: Eval, right: Eval, *, stop: bool) -> Eval:
    """Return the evaluation function of `&&` (`stop` is False) or `||` (`stop` is True).

    An operand with the value `stop` decides the result, even if the other operand is an error.

    Args:
        left: evaluates the left operand.
        right: evaluates the right operand.
        stop: the value that decides the result.
    """

    def run(f: Frame) -> Any:
        error: Failure[EvaluationError] | None = None
        try:
            value = left(f)
            if value is stop:
                return stop
            if value is not (not stop):
                error = Failure(no_such_overload())
        except EvaluationError as raised:
            error = Failure(raised)
        try:
            value = right(f)
        except EvaluationError as raised:
            raise error.error() if error is not None else raised from None
        if value is stop:
            return stop
        if error is not None:
            raise error.error()
        if value is not (not stop):
            raise no_such_overload()
        return not stop

    return run


def plan_or(left: Eval, right: Eval, *, value: bool) -> Eval:
    """Return the evaluation function of an optional's `or`, or of its `orValue` if `value` is set.

    `right` is evaluated only if the optional is empty.

    Args:
        left: evaluates the optional; an `EvaluationError` is raised for other values.
        right: evaluates the alternative, which is returned as it is.
        value: whether the function is `orValue`, so that the value inside the optional is returned.
    """

    def run(f: Frame) -> Any:
        optional_value = left(f)
        if not isinstance(optional_value, Optional):
            raise no_such_overload()
        if optional_value is NONE:
            return right(f)
        return optional_value.value if value else optional_value

    return run


def plan_membership(item: Planned, listed: list[Any]) -> Planned | None:
    """Return the plan of `item in listed` for a list of constants, or None if a constant is not of a simple type.

    Its evaluation costs only that of `item`.
    """
    if not listed:
        return Const(False)
    if any(not isinstance(element, _SET_MEMBERS) for element in listed):
        return None
    known = frozenset((element.__class__ is bool, element) for element in listed)
    run = finished(item)

    def contained(f: Frame) -> Any:
        value = run(f)
        return isinstance(value, _SET_MEMBERS) and (value.__class__ is bool, value) in known

    return contained


def plan_call(
    run: Callable[..., Any], args: list[Eval], cost: Cost, seconds: Callable[[Args], float] | None = None
) -> Eval:
    """Return the evaluation function of a call.

    The second of two arguments is evaluated even if the first fails. Calls with one or two arguments cost the same if
    an argument fails; calls with more end at the first failure, without their own cost.

    The cost is spent before the call unless it depends on the result, because the call may take as long as its cost
    says. Upstream spends it afterwards, with the same outcome.

    Args:
        run: the implementation, which is called with the values of the arguments.
        args: evaluate the receiver, if there is one, and the arguments.
        cost: the cost of the call without its arguments, or a function that computes it from their values and the
            result. In place of the value of an argument or of a result that could not be computed it gets `_FAILED`.
        seconds: estimates the time of a call that may take longer than its cost says, from the values of the arguments;
            None for others.
    """
    if isinstance(cost, int):
        return _called_fixed(run, args, cost)
    after = depends_on_result(cost)

    def call(f: Frame) -> Any:
        values: list[Any] = []
        result: Any = _FAILED
        error: Failure[EvaluationError] | None = None
        for arg in args:
            try:
                values.append(arg(f))
            except EvaluationError as raised:
                if len(args) > 2:
                    raise
                error = error or Failure(raised)
                values.append(_FAILED)
        if not after:
            f.spend(cost(values, _FAILED))
        try:
            if error is not None:
                raise error.error()
            if f.deadline < inf:
                f.check_time(0.0 if seconds is None else seconds(values))
            result = run(*values)
        finally:
            if after:
                f.spend(cost(values, result))
        return result

    return call


def _called_fixed(run: Callable[..., Any], args: list[Eval], cost: int) -> Eval:
    """Return the evaluation function of a call whose cost is constant.

    Calls with one and with two arguments have functions of their own, to keep evaluations fast.

    Args:
        run: the implementation, which is called with the values of the arguments.
        args: evaluate the receiver, if there is one, and the arguments.
        cost: the cost of the call without its arguments.
    """
    if len(args) == 1:
        (only,) = args

        def call1(f: Frame) -> Any:
            f.cost += cost
            return run(only(f))

        return call1
    if len(args) == 2:
        first, second = args

        def call2(f: Frame) -> Any:
            f.cost += cost
            try:
                a = first(f)
            except EvaluationError as error:
                with suppress(EvaluationError):
                    second(f)
                raise error from None
            return run(a, second(f))

        return call2

    def call(f: Frame) -> Any:
        values = [arg(f) for arg in args]
        f.cost += cost
        return run(*values)

    return call
