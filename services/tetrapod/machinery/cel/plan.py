"""Checked trees to functions: the evaluator, with upstream's constant folding and actual costs.

Upstream: cel-go interpreter/planner.go, decorators.go (constant folding, set membership) and runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.attributes import Attribute, Conditional, Qualifier
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.folds import binder, plan_binding, plan_fold, plan_quantifier
from tetrapod.machinery.cel.frame import MISSING, Eval, Failed, Frame
from tetrapod.machinery.cel.library.ordering import summing
from tetrapod.machinery.cel.library.registry import implementation
from tetrapod.machinery.cel.nodes import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from tetrapod.machinery.cel.runtime_costs import LIST_COST, MAP_COST, STRUCT_COST, Cost, cost_of
from tetrapod.machinery.cel.types import CelType
from tetrapod.machinery.cel.values import NONE, Optional, StructValue, no_such_overload, shown, type_of_value

_CONVERSIONS: Final = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})
_REGEX: Final = frozenset({"matches", "find", "findAll"})
_SET_MEMBERS: Final = (str, int, float, bool, type(None))
_FAILED: Final = object()


class InstantiationError(ValueError):
    """A constant part that is an error already, such as `int('x')`."""


class Const(NamedTuple):
    value: Any


Planned = Const | Attribute | Conditional | Callable[[Frame], Any]


class Plan:
    """The functions of one expression, and the names of the variables in its first slots."""

    def __init__(self, node: Node) -> None:
        self.names: list[str] = []
        self._globals: dict[str, int] = {}
        self._locals: list[dict[str, int]] = []
        self._fresh: set[int] = set()  # slots of accumulators that nobody else holds
        self._size = 0
        self._later: list[tuple[str, int]] = []
        self.run = self._eval(node)

    def frame_slots(self) -> list[Any]:
        return [MISSING] * self._size

    @property
    def variables(self) -> dict[str, int]:
        return self._globals

    def _slot(self) -> int:
        self._size += 1
        return self._size - 1

    def _find_slot(self, name: str) -> int:
        if not name.startswith("."):
            for names in reversed(self._locals):
                if name in names:
                    return names[name]
        name = name.removeprefix(".")
        if name not in self._globals:
            self._globals[name] = self._slot()
        return self._globals[name]

    def _eval(self, node: Node) -> Eval:
        return _finished(self._plan(node))

    def _plan(self, node: Node) -> Planned:
        match node:
            case Literal():
                return Const(node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case StructNode():
                return self._struct(node)
            case Comprehension():
                return self._comprehension(node)
        raise TypeError(type(node))

    def _ident(self, node: Ident) -> Planned:
        if node.type_name is not None:
            if node.type_name in (types.DURATION, types.TIMESTAMP) and "." not in node.name:
                raise InstantiationError(f"reference to undefined type: {node.name}")
            return Const(CelType(node.type_name.kind, node.type_name.name))
        return Attribute(None, self._find_slot(node.name), node.name)

    def _select(self, node: Select) -> Planned:
        if node.resolved is not None:
            return self._ident(node.resolved)
        attribute = self._attribute(node.operand)
        attribute.add(Qualifier(node.field, test=node.test_only))
        return attribute.resolver(0) if node.test_only else attribute

    def _attribute(self, node: Node) -> Attribute | Conditional:
        return _as_attribute(self._plan(node))

    def _call(self, node: Call) -> Planned:
        match node.function:
            case "_&&_" | "_||_":
                return _logic(self._eval(node.args[0]), self._eval(node.args[1]), stop=node.function == "_||_")
            case "_?_:_":
                condition, true, false = (self._plan(a) for a in node.args)
                return Conditional(_finished(condition), _as_attribute(true), _as_attribute(false))
            case "_[_]" | "_[?_]" | "_?._":
                return self._index(node)
            case "_+_" if self._appends(node):
                return self._append(node)
            case "or" | "orValue":
                return _or(self._eval(node.operands[0]), self._eval(node.operands[1]), value=node.function == "orValue")
        args = [self._plan(a) for a in node.operands]
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        if node.function == "@in" and overload == "in_list" and isinstance(args[1], Const):
            known = _membership(args[0], args[1].value)
            if known is not None:
                return known
        run = implementation(node.function)
        if node.function == "sum":
            run = summing(run, overload)
        self._check_pattern(node, args)
        if node.function in _CONVERSIONS and len(args) == 1 and isinstance(args[0], Const):
            value = args[0].value
            return Const(_folded(lambda: run(value)))
        if node.function == "cel.@mapInsert" and isinstance(node.args[0], Ident) and self._find_slot(node.args[0].name) in self._fresh:
            run = _insert
        return _called(run, [_finished(a) for a in args], cost_of(node.function, overload))

    def _check_pattern(self, node: Call, args: list[Planned]) -> None:
        """A pattern that is constant is compiled now."""
        if node.function in _REGEX and isinstance(args[1], Const) and isinstance(args[1].value, str):
            from tetrapod.machinery.schema.patterns import BadPattern, compile_pattern

            try:
                compile_pattern(args[1].value)
            except BadPattern as error:
                raise InstantiationError(str(error)) from None

    def _index(self, node: Call) -> Planned:
        attribute = self._attribute(node.args[0])
        key = self._plan(node.args[1])
        optional = node.function != "_[_]"
        if isinstance(key, Const):
            attribute.add(Qualifier(key.value, optional=optional))
        elif isinstance(key, (Attribute, Conditional)):
            attribute.add(Qualifier(run=key.resolver(0), optional=optional))
        else:
            attribute.add(Qualifier(run=key, optional=optional))
        return attribute

    def _appends(self, node: Call) -> bool:
        """Whether it is `accumulator + [element]` of a macro: then nobody else has the list."""
        left, right = node.args
        return isinstance(left, Ident) and isinstance(right, ListNode) and len(right.elements) == 1 and self._is_fresh(left.name)

    def _is_fresh(self, name: str) -> bool:
        return self._find_slot(name) in self._fresh

    def _append(self, node: Call) -> Planned:
        left, right = node.args
        assert isinstance(left, Ident) and isinstance(right, ListNode)
        slot = self._find_slot(left.name)
        element = self._plan(right.elements[0])
        # 1 for the accumulator, 1 for the call, and the list's cost where it is not a constant.
        cost = 2 if isinstance(element, Const) else 2 + LIST_COST
        run, optional = _finished(element), bool(right.optional)

        def append(f: Frame) -> Any:
            f.cost += cost
            value = run(f)
            accu = f.slots[slot]
            if accu.__class__ is Failed:
                raise accu.error
            if not optional:
                accu.append(value)
            elif not isinstance(value, Optional):
                raise _not_optional_element(value)
            elif value is not NONE:
                accu.append(value.value)
            return accu

        return append

    def _list(self, node: ListNode) -> Planned:
        planned = [self._plan(e) for e in node.elements]
        if all(isinstance(p, Const) for p in planned) and not node.optional:
            return Const([p.value for p in planned if isinstance(p, Const)])
        runs = [_finished(p) for p in planned]
        if not node.optional:

            def build(f: Frame) -> Any:
                f.cost += LIST_COST
                return [run(f) for run in runs]

            return build
        flagged = [(run, i in node.optional) for i, run in enumerate(runs)]

        def build_some(f: Frame) -> Any:
            f.cost += LIST_COST
            made = []
            for run, optional in flagged:
                value = run(f)
                if optional:
                    if not isinstance(value, Optional):
                        raise _not_optional_element(value)
                    if value is NONE:
                        continue
                    value = value.value
                made.append(value)
            return made

        return build_some

    def _map(self, node: MapNode) -> Planned:
        keys = [self._plan(e.key) for e in node.entries if e.key is not None]
        values = [self._plan(e.value) for e in node.entries]
        runs = [(_finished(k), _finished(v), e.optional) for k, v, e in zip(keys, values, node.entries, strict=True)]

        def build(f: Frame) -> Any:
            f.cost += MAP_COST
            made: dict[Any, Any] = {}
            for key_run, value_run, optional in runs:
                key, value = key_run(f), value_run(f)
                if optional:
                    if not isinstance(value, Optional):
                        raise EvaluationError(f"cannot initialize optional entry '{shown(key)}' from non-optional value {shown(value)}")
                    if value is NONE:
                        made.pop(key, None)
                        continue
                    value = value.value
                if not isinstance(key, (str, int, float)):
                    raise EvaluationError(f"unsupported key type: {type_of_value(key)}")
                made[key] = value
            return made

        if all(isinstance(p, Const) for p in (*keys, *values)) and not any(e.optional for e in node.entries):
            return Const(_folded(lambda: build(Frame([], 1 << 62))))
        return build

    def _struct(self, node: StructNode) -> Planned:
        fields = [(e.name, self._eval(e.value), e.optional) for e in node.entries]
        name = node.type_name
        allowed = ("op", "path", "from", "value") if name == "JSONPatch" else None

        def build(f: Frame) -> Any:
            f.cost += STRUCT_COST
            made: dict[str, Any] = {}
            for field, run, optional in fields:
                value = run(f)
                if optional:
                    if not isinstance(value, Optional):
                        raise EvaluationError(f"cannot initialize optional entry '{field}' from non-optional value {shown(value)}")
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

    def _comprehension(self, node: Comprehension) -> Planned:
        over, init = self._eval(node.range), self._plan(node.init)
        accu = self._slot()
        empty = isinstance(node.range, ListNode) and not node.range.elements
        if empty and isinstance(node.condition, Literal) and node.condition.value is False:
            self._locals.append({node.accu: accu})
            result = self._eval(node.result)
            self._locals.pop()
            return plan_binding(accu, _finished(init), result)
        if isinstance(init, Const) and isinstance(init.value, (list, dict)) and not init.value:
            self._fresh.add(accu)
            made = init.value.__class__
            start: Eval = lambda f: made()  # noqa: E731
        else:
            start = _finished(init)
        self._locals.append({node.accu: accu})
        first = self._slot()
        second = self._slot() if node.var2 else None
        variables = {node.var: first} | ({node.var2: second} if second is not None else {})
        self._locals.append(variables)
        bind = binder(first, second)
        quantified = self._quantified(node)
        if quantified is not None:
            planned = plan_quantifier(over, bind, self._eval(quantified[0]), quantified[1])
            del self._locals[-2:]
            return planned
        always = isinstance(node.condition, Literal) and node.condition.value is True
        condition = None if always else self._eval(node.condition)
        step = self._eval(node.step)
        self._locals.pop()
        result = self._eval(node.result)
        self._locals.pop()
        return plan_fold(over, bind, accu, start, condition, step, result)

    def _quantified(self, node: Comprehension) -> tuple[Node, bool] | None:
        """The predicate of `all` or `exists`, and what ends it."""
        condition, step = node.condition, node.step
        if not (isinstance(condition, Call) and condition.function == "@not_strictly_false" and isinstance(step, Call)):
            return None
        return step.args[1], step.function == "_||_"


def _finished(planned: Planned) -> Eval:
    if isinstance(planned, Const):
        value = planned.value
        return lambda f: value
    return planned.resolver(1) if isinstance(planned, (Attribute, Conditional)) else planned


def _as_attribute(planned: Planned) -> Attribute | Conditional:
    return planned if isinstance(planned, (Attribute, Conditional)) else Attribute(_finished(planned))


def _folded(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except EvaluationError as error:
        raise InstantiationError(str(error)) from None


def _not_optional_element(value: Any) -> EvaluationError:
    return EvaluationError(f"cannot initialize optional list element from non-optional value {shown(value)}")


def _insert(*args: Any) -> Any:
    """Into an accumulator that nobody else has."""
    target = args[0]
    for key, value in [args[1:]] if len(args) == 3 else list(args[1].items()):
        if key in target:
            raise EvaluationError(f"insert failed: key {shown(key)} already exists")
        target[key] = value
    return target


def _logic(left: Eval, right: Eval, *, stop: bool) -> Eval:
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


def _or(left: Eval, right: Eval, *, value: bool) -> Eval:
    def run(f: Frame) -> Any:
        found = left(f)
        if not isinstance(found, Optional):
            raise no_such_overload()
        if found is NONE:
            return right(f)
        return found.value if value else found

    return run


def _membership(item: Planned, listed: list[Any]) -> Planned | None:
    """`x in [constants]` costs nothing but x."""
    if not listed:
        return Const(False)
    if any(not isinstance(element, _SET_MEMBERS) for element in listed):
        return None
    known = frozenset((element.__class__ is bool, element) for element in listed)
    run = _finished(item)

    def contained(f: Frame) -> Any:
        value = run(f)
        return isinstance(value, _SET_MEMBERS) and (value.__class__ is bool, value) in known

    return contained


def _called(run: Callable[..., Any], args: list[Eval], cost: Cost) -> Eval:
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
