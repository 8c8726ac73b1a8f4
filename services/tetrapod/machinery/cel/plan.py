"""The planner: it turns a checked tree into functions that evaluate it.

A plan decides once how each node is evaluated, including upstream's constant folding and runtime costs. A planned node
(`Planned`) is a constant, an attribute, or an evaluation function, which returns the value of the node given a `Frame`.
The functions that run at each evaluation are in `plan_calls`, `plan_literals`, `comprehensions` (macros) and
`attributes`.

Upstream: cel-go interpreter/planner.go, decorators.go (constant folding, set membership) and runtimecost.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.attributes import Attribute, Conditional, Qualifier
from tetrapod.machinery.cel.comprehensions import binder, plan_binding, plan_fold, plan_quantifier
from tetrapod.machinery.cel.frame import MISSING, Eval, Frame
from tetrapod.machinery.cel.library.ordering import summing
from tetrapod.machinery.cel.library.registry import implementation, seconds_of
from tetrapod.machinery.cel.nodes import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from tetrapod.machinery.cel.plan_calls import insert, plan_call, plan_logic, plan_membership, plan_or, with_pattern
from tetrapod.machinery.cel.plan_literals import plan_append, plan_list, plan_map, plan_struct
from tetrapod.machinery.cel.plan_results import Const, InstantiationError, Planned, as_attribute, finished, folded
from tetrapod.machinery.cel.runtime_costs import LIST_COST, cost_of
from tetrapod.machinery.cel.types import CelType
from tetrapod.machinery.cel.values import go_type

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_REGEX: Final = frozenset({"matches", "find", "findAll"})


class Plan:
    """The evaluation function (`run`) of one checked expression, and the indexes of its variables in `Frame.slots`.

    Args:
        node: the checked tree.

    Raises:
        InstantiationError: a constant part of the expression fails.
    """

    def __init__(self, node: Node) -> None:
        self.names: list[str] = []
        self._globals: dict[str, int] = {}
        self._locals: list[dict[str, int]] = []
        self._fresh: set[int] = set()  # slots of accumulators to which nothing else refers
        self._size = 0
        self.run = self._eval(node)

    def frame_slots(self) -> list[Any]:
        """Return a new list for `Frame.slots`, in which no variable has a value yet."""
        return [MISSING] * self._size

    @property
    def variables(self) -> dict[str, int]:
        """Return the index in `Frame.slots` of each variable that the expression uses, by its name.

        Variables of comprehensions are not included.
        """
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
        return finished(self._plan(node))

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
        return as_attribute(self._plan(node))

    def _call(self, node: Call) -> Planned:
        """Return a call in planned form.

        Logical operators, conditionals, indexes, `or`, `orValue`, and `in` with a list of constants are planned
        separately. So is `accumulator + [element]` in macros, which appends in place. Conversions of constants become
        constants. Every other call becomes a function that evaluates the operands and calls the implementation.

        Raises:
            InstantiationError: a conversion of a constant fails, or a constant pattern is invalid.
        """
        match node.function:
            case "_&&_" | "_||_":
                return plan_logic(self._eval(node.args[0]), self._eval(node.args[1]), stop=node.function == "_||_")
            case "_?_:_":
                condition, true, false = (self._plan(a) for a in node.args)
                return Conditional(finished(condition), as_attribute(true), as_attribute(false))
            case "_[_]" | "_[?_]" | "_?._":
                return self._index(node)
            case "_+_" if self._appends(node):
                return self._append(node)
            case "or" | "orValue":
                return plan_or(
                    self._eval(node.operands[0]), self._eval(node.operands[1]), value=node.function == "orValue"
                )
        args = [self._plan(a) for a in node.operands]
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        if node.function == "@in" and overload == "in_list" and isinstance(args[1], Const):
            known = plan_membership(args[0], args[1].value)
            if known is not None:
                return known
        run = implementation(node.function)
        if node.function == "sum":
            run = summing(run, overload)
        if self._check_pattern(node, args):
            run = with_pattern(run)
        if node.function in _CONVERSIONS and len(args) == 1 and isinstance(args[0], Const):
            value = args[0].value
            return Const(folded(lambda: run(value)))
        if (
            node.function == "cel.@mapInsert"
            and isinstance(node.args[0], Ident)
            and self._find_slot(node.args[0].name) in self._fresh
        ):
            run = insert
        return plan_call(run, [finished(a) for a in args], cost_of(node.function, overload), seconds_of(node.function))

    def _check_pattern(self, node: Call, args: list[Planned]) -> bool:
        """Return whether a call is that of a regex function with a constant pattern, after checking the pattern.

        `args` are the planned operands of the call, of which the pattern is the second.

        Raises:
            InstantiationError: the pattern is invalid.
        """
        if node.function in _REGEX and isinstance(args[1], Const) and isinstance(args[1].value, str):
            from tetrapod.machinery.golang.regular_expressions import BadPattern, compile_pattern

            try:
                compile_pattern(args[1].value)
            except BadPattern as error:
                raise InstantiationError(str(error)) from None
            return True
        return False

    def _index(self, node: Call) -> Planned:
        attribute = self._attribute(node.args[0])
        key = self._plan(node.args[1])
        optional = node.function != "_[_]"
        if isinstance(key, Const):
            if not isinstance(key.value, (str, int, float)):
                raise InstantiationError(f"invalid qualifier type: {go_type(key.value)}")
            attribute.add(Qualifier(key.value, optional=optional))
        elif isinstance(key, (Attribute, Conditional)):
            attribute.add(Qualifier(run=key.resolver(0), optional=optional))
        else:
            attribute.add(Qualifier(run=key, optional=optional))
        return attribute

    def _appends(self, node: Call) -> bool:
        """Return whether a call is `accumulator + [element]` in a macro whose accumulator began as an empty list.

        Nothing else refers to that list, so it can be extended in place.
        """
        left, right = node.args
        return (
            isinstance(left, Ident)
            and isinstance(right, ListNode)
            and len(right.elements) == 1
            and self._is_fresh(left.name)
        )

    def _is_fresh(self, name: str) -> bool:
        return self._find_slot(name) in self._fresh

    def _append(self, node: Call) -> Planned:
        left, right = node.args
        assert isinstance(left, Ident) and isinstance(right, ListNode)
        slot = self._find_slot(left.name)
        element = self._plan(right.elements[0])
        # 1 for the accumulator, 1 for the call, and the cost of the list unless it is a constant.
        cost = 2 if isinstance(element, Const) else 2 + LIST_COST
        return plan_append(slot, finished(element), cost, optional=bool(right.optional))

    def _list(self, node: ListNode) -> Planned:
        planned = [self._plan(e) for e in node.elements]
        if all(isinstance(p, Const) for p in planned) and not node.optional:
            return Const([p.value for p in planned if isinstance(p, Const)])
        runs = [finished(p) for p in planned]
        return plan_list(runs, node.optional)

    def _map(self, node: MapNode) -> Planned:
        keys = [self._plan(e.key) for e in node.entries if e.key is not None]
        values = [self._plan(e.value) for e in node.entries]
        runs = [(finished(k), finished(v), e.optional) for k, v, e in zip(keys, values, node.entries, strict=True)]

        build = plan_map(runs)
        if all(isinstance(p, Const) for p in (*keys, *values)) and not any(e.optional for e in node.entries):
            return Const(folded(lambda: build(Frame([], 1 << 62))))
        return build

    def _struct(self, node: StructNode) -> Planned:
        fields = [(e.name, self._eval(e.value), e.optional) for e in node.entries]
        return plan_struct(node.type_name, fields)

    def _comprehension(self, node: Comprehension) -> Planned:
        """Plan a comprehension: the binding of a variable, `all` or `exists`, or a general fold."""
        over, init = self._eval(node.range), self._plan(node.init)
        accu = self._slot()
        empty = isinstance(node.range, ListNode) and not node.range.elements
        if empty and isinstance(node.condition, Literal) and node.condition.value is False:
            self._locals.append({node.accu: accu})
            result = self._eval(node.result)
            self._locals.pop()
            return plan_binding(accu, finished(init), result)
        if isinstance(init, Const) and isinstance(init.value, (list, dict)) and not init.value:
            self._fresh.add(accu)
            empty_class = init.value.__class__
            start: Eval = lambda f: empty_class()  # noqa: E731
        else:
            start = finished(init)
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
        """Return the predicate of `all` or `exists`, and its value that ends the loop (False or True).

        The result is None for other comprehensions.
        """
        condition, step = node.condition, node.step
        if not (isinstance(condition, Call) and condition.function == "@not_strictly_false" and isinstance(step, Call)):
            return None
        return step.args[1], step.function == "_||_"
