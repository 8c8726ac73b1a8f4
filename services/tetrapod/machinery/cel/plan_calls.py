"""Calls as functions of a frame: operators that may leave a side out, membership, and functions with what they cost.

Upstream: cel-go interpreter/interpretable.go (evalAnd, evalOr, evalZeroArity...), decorators.go (set membership), runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.frame import Eval, Frame
from tetrapod.machinery.cel.planned import Const, Planned, finished
from tetrapod.machinery.cel.runtime_costs import Cost
from tetrapod.machinery.cel.values import NONE, Optional, no_such_overload, shown

_SET_MEMBERS: Final = (str, int, float, bool, type(None))
_FAILED: Final = object()


def insert(*args: Any) -> Any:
    """Into an accumulator that nobody else has."""
    target = args[0]
    for key, value in [args[1:]] if len(args) == 3 else list(args[1].items()):
        if key in target:
            raise EvaluationError(f"insert failed: key {shown(key)} already exists")
        target[key] = value
    return target


def with_pattern(run: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose pattern is constant: upstream puts one in its place that looks at the text itself (OptOptimize)."""

    def call(text: Any, *args: Any) -> Any:
        if not isinstance(text, str):
            raise no_such_overload()
        return run(text, *args)

    return call


def plan_logic(left: Eval, right: Eval, *, stop: bool) -> Eval:
    """`&&` and `||`: either side may decide, whatever error the other one is."""

    def run(f: Frame) -> Any:
        error: EvaluationError | None = None
        try:
            value = left(f)
            if value is stop:
                return stop
            if value is not (not stop):
                error = no_such_overload()
        except EvaluationError as raised:
            error = raised
        try:
            value = right(f)
        except EvaluationError as raised:
            raise (error or raised) from None
        if value is stop:
            return stop
        if error is not None:
            raise error
        if value is not (not stop):
            raise no_such_overload()
        return not stop

    return run


def plan_or(left: Eval, right: Eval, *, value: bool) -> Eval:
    """`or`, and with `value` `orValue`, of an optional: the right side is looked at where there is none."""

    def run(f: Frame) -> Any:
        found = left(f)
        if not isinstance(found, Optional):
            raise no_such_overload()
        if found is NONE:
            return right(f)
        return found.value if value else found

    return run


def plan_membership(item: Planned, listed: list[Any]) -> Planned | None:
    """`x in [constants]` costs nothing but x."""
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


def plan_call(run: Callable[..., Any], args: list[Eval], cost: Cost) -> Eval:
    """A call; it costs the same when an argument fails, and the second of two arguments is evaluated all the same."""
    if isinstance(cost, int):
        return _called_fixed(run, args, cost)

    def call(f: Frame) -> Any:
        values: list[Any] = []
        result: Any = _FAILED
        error = None
        for arg in args:
            try:
                values.append(arg(f))
            except EvaluationError as raised:
                if len(args) > 2:
                    raise
                error = error or raised
                values.append(_FAILED)
        try:
            if error is not None:
                raise error
            result = run(*values)
        finally:
            f.spend(cost(values, result))
        return result

    return call


def _called_fixed(run: Callable[..., Any], args: list[Eval], cost: int) -> Eval:
    """With a cost that is known beforehand, by the number of arguments: nothing is done twice for each evaluation."""
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
