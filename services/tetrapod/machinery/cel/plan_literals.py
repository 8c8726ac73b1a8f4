"""Lists, maps and objects as functions of a frame that build them.

Upstream: cel-go interpreter/interpretable.go (evalList, evalMap, evalObj) and runtimecost.go; JSONPatch is of apiserver's
pkg/cel/mutation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.frame import Eval, Failed, Frame
from tetrapod.machinery.cel.runtime_costs import LIST_COST, MAP_COST, STRUCT_COST
from tetrapod.machinery.cel.values import NONE, Optional, StructValue, shown, type_of_value


def plan_list(runs: Sequence[Eval], optional: Collection[int]) -> Eval:
    """A list of elements; those at the places `optional` are left out where they are none."""
    if not optional:

        def build(f: Frame) -> Any:
            f.cost += LIST_COST
            return [run(f) for run in runs]

        return build
    flagged = [(run, i in optional) for i, run in enumerate(runs)]

    def build_some(f: Frame) -> Any:
        f.cost += LIST_COST
        made = []
        for run, may_lack in flagged:
            value = run(f)
            if may_lack:
                if not isinstance(value, Optional):
                    raise _not_optional("list element", value)
                if value is NONE:
                    continue
                value = value.value
            made.append(value)
        return made

    return build_some


def plan_append(slot: int, run: Eval, cost: int, *, optional: bool) -> Eval:
    """One more element for a list that nobody else has: the accumulator in `slot`."""

    def append(f: Frame) -> Any:
        f.cost += cost
        value = run(f)
        accu = f.slots[slot]
        if accu.__class__ is Failed:
            raise accu.error
        if not optional:
            accu.append(value)
        elif not isinstance(value, Optional):
            raise _not_optional("list element", value)
        elif value is not NONE:
            accu.append(value.value)
        return accu

    return append


def plan_map(runs: Sequence[tuple[Eval, Eval, bool]]) -> Eval:
    """A map of keys and values, in order; an optional entry is left out where it is none."""

    def build(f: Frame) -> Any:
        f.cost += MAP_COST
        made: dict[Any, Any] = {}
        for key_run, value_run, optional in runs:
            key, value = key_run(f), value_run(f)
            if optional:
                if not isinstance(value, Optional):
                    raise _not_optional(f"entry '{shown(key)}'", value)
                if value is NONE:
                    made.pop(key, None)
                    continue
                value = value.value
            if not isinstance(key, (str, int, float)):
                raise EvaluationError(f"unsupported key type: {type_of_value(key)}")
            made[key] = value
        return made

    return build


def plan_struct(name: str, fields: Sequence[tuple[str, Eval, bool]]) -> Eval:
    """An object of that type, of its fields in order; an optional one is left out where it is none."""
    allowed = ("op", "path", "from", "value") if name == "JSONPatch" else None

    def build(f: Frame) -> Any:
        f.cost += STRUCT_COST
        made: dict[str, Any] = {}
        for field, run, optional in fields:
            value = run(f)
            if optional:
                if not isinstance(value, Optional):
                    raise _not_optional(f"entry '{field}'", value)
                if value is NONE:
                    made.pop(field, None)
                    continue
                value = value.value
            if allowed is not None:
                if field not in allowed:
                    raise EvaluationError(f"unexpected JSONPatchType field: {field}")
                if field != "value" and not isinstance(value, str):
                    raise EvaluationError(f"unexpected type {type_of_value(value).name} for JSONPatchType '{field}' field")
            made[field] = value
        return StructValue(name, made)

    return build


def _not_optional(what: str, value: Any) -> EvaluationError:
    return EvaluationError(f"cannot initialize optional {what} from non-optional value {shown(value)}")
