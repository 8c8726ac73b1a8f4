"""Evaluation functions for lists, maps and objects.

Upstream: cel-go interpreter/interpretable.go (evalList, evalMap, evalObj) and runtimecost.go; apiserver
pkg/cel/mutation (JSONPatch).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.frame import Eval, Failed, Frame
from tetrapod.machinery.cel.runtime_costs import LIST_COST, MAP_COST, STRUCT_COST
from tetrapod.machinery.cel.values import NONE, Optional, StructValue, shown, type_of_value


def plan_list(runs: Sequence[Eval], optional: Collection[int]) -> Eval:
    """Return the evaluation function of a list.

    Args:
        runs: evaluate the elements.
        optional: the indexes of the elements written as `?element`, whose values are optionals: the value inside is
            added, or nothing if it is empty.
    """
    if not optional:

        def build(f: Frame) -> Any:
            f.cost += LIST_COST
            return [run(f) for run in runs]

        return build
    flagged = [(run, i in optional) for i, run in enumerate(runs)]

    def build_some(f: Frame) -> Any:
        f.cost += LIST_COST
        elements = []
        for run, is_optional in flagged:
            value = run(f)
            if is_optional:
                if not isinstance(value, Optional):
                    raise _not_optional("list element", value)
                if value is NONE:
                    continue
                value = value.value
            elements.append(value)
        return elements

    return build_some


def plan_append(slot: int, run: Eval, cost: int, *, optional: bool) -> Eval:
    """Return a function that appends an element to an accumulator, a list, in place, and returns the list.

    Nothing but the accumulator may refer to the list.

    Args:
        slot: the index of the accumulator in `Frame.slots`.
        run: evaluates the element.
        cost: the cost that each append adds to the frame, without the cost of evaluating the element.
        optional: whether the element is an optional (`[?x]`): its value is appended, or nothing if it has none.
    """

    def append(f: Frame) -> Any:
        f.cost += cost
        value = run(f)
        accu = f.slots[slot]
        if accu.__class__ is Failed:
            raise accu.failure.error()
        if not optional:
            accu.append(value)
        elif not isinstance(value, Optional):
            raise _not_optional("list element", value)
        elif value is not NONE:
            accu.append(value.value)
        return accu

    return append


def plan_map(runs: Sequence[tuple[Eval, Eval, bool]]) -> Eval:
    """Return the evaluation function of a map.

    It raises `EvaluationError` for keys of a wrong type, and for optional entries whose value is not an optional.

    Args:
        runs: for each entry, functions that evaluate its key and its value, and whether it was written with `?`. The
            value is then an optional, and the entry is left out if that is empty.
    """

    def build(f: Frame) -> Any:
        f.cost += MAP_COST
        result: dict[Any, Any] = {}
        for key_run, value_run, optional in runs:
            key, value = key_run(f), value_run(f)
            if optional:
                if not isinstance(value, Optional):
                    raise _not_optional(f"entry '{shown(key)}'", value)
                if value is NONE:
                    result.pop(key, None)
                    continue
                value = value.value
            if not isinstance(key, (str, int, float)):
                raise EvaluationError(f"unsupported key type: {type_of_value(key)}")
            result[key] = value
        return result

    return build


def plan_struct(name: str, fields: Sequence[tuple[str, Eval, bool]]) -> Eval:
    """Return the evaluation function of an object.

    It raises `EvaluationError` for optional fields whose value is not an optional, and for wrong fields of JSONPatch.

    Args:
        name: the name of its type.
        fields: for each field, its name, a function that evaluates it, and whether it was written with `?`. The value
            is then an optional, and the field is left out if that is empty.
    """
    allowed = ("op", "path", "from", "value") if name == "JSONPatch" else None

    def build(f: Frame) -> Any:
        f.cost += STRUCT_COST
        result: dict[str, Any] = {}
        for field, run, optional in fields:
            value = run(f)
            if optional:
                if not isinstance(value, Optional):
                    raise _not_optional(f"entry '{field}'", value)
                if value is NONE:
                    result.pop(field, None)
                    continue
                value = value.value
            if allowed is not None:
                if field not in allowed:
                    raise EvaluationError(f"unexpected JSONPatchType field: {field}")
                if field != "value" and not isinstance(value, str):
                    raise EvaluationError(
                        f"unexpected type {type_of_value(value).name} for JSONPatchType '{field}' field"
                    )
            result[field] = value
        return StructValue(name, result)

    return build


def _not_optional(noun: str, value: Any) -> EvaluationError:
    return EvaluationError(f"cannot initialize optional {noun} from non-optional value {shown(value)}")
