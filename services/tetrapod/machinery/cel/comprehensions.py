"""Evaluation functions for comprehensions: the folds that macros such as `all`, `map` and `optMap` expand to.

`plan` calls this module. `all` and `exists` have loops of their own, with the same costs as the steps of the fold.

Upstream: cel-go interpreter/interpretable.go, evalFold and folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any

from tetrapod.machinery.cel.errors import CostLimitExceeded, EvaluationError
from tetrapod.machinery.cel.frame import Eval, Failed, Frame
from tetrapod.machinery.cel.values import CheckedList, Fields, Lazy, ObjectLike, find, go_type, no_such_overload, shown
from tetrapod.machinery.failure import Failure

_Bind = Callable[[Frame, Any], Iterable[None]]


def binder(slot: int, slot2: int | None) -> _Bind:
    """Return a generator function that iterates over a list or map and assigns the variables of a comprehension.

    It takes the frame of the evaluation and the list or map, and yields after storing an element. It raises
    `EvaluationError` for values of other types, and `CostLimitExceeded` and `TakesTooLong` between elements.

    Args:
        slot: the index in `Frame.slots` of the first variable: the element of a list or key of a map, if there is only
            one variable.
        slot2: the index of the second variable, or None. With two, they are index and element, or key and value.
    """
    if slot2 is None:

        def one(f: Frame, over: Any) -> Iterable[None]:
            slots, limit, timed = f.slots, f.limit, f.deadline < inf
            if not isinstance(over, (list, dict, ObjectLike)):
                raise EvaluationError(f"got '{go_type(over)}', expected iterable type")
            for item in over.elements() if isinstance(over, (Fields, CheckedList)) else over:
                slots[slot] = item
                yield
                if f.cost > limit:
                    raise CostLimitExceeded
                if timed:
                    f.check_time()

        return one

    def two(f: Frame, over: Any) -> Iterable[None]:
        slots, limit, timed = f.slots, f.limit, f.deadline < inf
        if isinstance(over, list):
            pairs: Iterable[tuple[Any, Any]] = enumerate(over.elements() if isinstance(over, CheckedList) else over)
        elif isinstance(over, (dict, ObjectLike)):
            pairs = _entries(over)
        else:
            raise EvaluationError(f"unsupported comprehension range type: {go_type(over)}")
        for slots[slot], slots[slot2] in pairs:
            yield
            if f.cost > limit:
                raise CostLimitExceeded
            if timed:
                f.check_time()

    return two


def _entries(over: dict[Any, Any] | ObjectLike) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and values of a map.

    Raises:
        EvaluationError: a key cannot be looked up, such as the escaped name of a claim.
    """
    for key in over.elements() if isinstance(over, Fields) else over:
        try:
            yield key, find(over, key)
        except KeyError:
            raise EvaluationError(f"no such key: {shown(key)}") from None


def plan_quantifier(over: Eval, bind: _Bind, predicate: Eval, stop: bool) -> Eval:
    """Return the evaluation function of `all` or `exists`.

    A step costs the condition (2 for `all`, 3 for `exists`) and the accumulator (1). An error of the predicate is
    raised only if no later element decides the result.

    Args:
        over: evaluates the list or map.
        bind: the iteration over it, from `binder`.
        predicate: evaluates the predicate for one element.
        stop: the value of the predicate that ends the loop and is the result: False for `all`, True for `exists`.
    """
    condition = 3 if stop else 2

    def run(f: Frame) -> Any:
        error: Failure[EvaluationError] | None = None
        done = False
        items = over(f)
        for _ in bind(f, items):
            f.cost += condition
            if done:
                break
            f.cost += 1
            try:
                value = predicate(f)
            except EvaluationError as raised:
                error = error or Failure(raised)
                continue
            if value is stop:
                done = True
            elif value is not True and value is not False:
                error = error or Failure(no_such_overload())
        f.cost += 1
        if done:
            return stop
        if error is not None:
            raise error.error()
        return not stop

    return run


def plan_fold(over: Eval, bind: _Bind, accu: int, init: Eval, condition: Eval | None, step: Eval, result: Eval) -> Eval:
    """Return the evaluation function of a general comprehension.

    Args:
        over: evaluates the list or map.
        bind: the iteration over it, from `binder`.
        accu: the index of the accumulator in `Frame.slots`.
        init: evaluates the first value of the accumulator.
        condition: evaluates whether the loop goes on; None means always.
        step: evaluates the next value of the accumulator. An error in it, or in the condition, is stored in the
            accumulator, and raised when the accumulator is read.
        result: evaluates the result.
    """

    def run(f: Frame) -> Any:
        items = over(f)
        slots = f.slots
        slots[accu] = init(f)
        for _ in bind(f, items):
            try:
                if condition is not None and condition(f) is False:
                    break
                slots[accu] = step(f)
            except EvaluationError as error:
                slots[accu] = Failed(error)
        return result(f)

    return run


def plan_binding(accu: int, init: Eval, result: Eval) -> Eval:
    """Return the evaluation function of `result` with a variable that is computed at first use, as in `cel.bind`.

    Args:
        accu: the index of the variable in `Frame.slots`.
        init: evaluates the variable.
        result: evaluates the result.
    """

    def run(f: Frame) -> Any:
        f.slots[accu] = Lazy(lambda: init(f))
        return result(f)

    return run
