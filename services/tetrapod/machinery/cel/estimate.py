"""The static estimate of the lowest and the highest cost of an expression.

The validation of CRDs and policies uses it to reject expressions that are too expensive. `call_costs` estimates calls.
The sizes of variables come from their declared types.

Upstream: cel-go checker/cost.go; apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go, sizeEstimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tetrapod.machinery.cel.call_costs import call_cost
from tetrapod.machinery.cel.cost_operands import Operand, Path
from tetrapod.machinery.cel.declarations import DeclType
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
from tetrapod.machinery.cel.runtime_costs import LIST_COST, MAP_COST, STRUCT_COST
from tetrapod.machinery.cel.sizes import EMPTY, MAX, ONE, UNKNOWN, ZERO, Range, fixed
from tetrapod.machinery.cel.types import CelType

_SCALARS: Final = ("bool", "double", "duration", "int", "timestamp", "uint")
_SELECTABLE: Final = ("map", "struct", "param")


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The lowest (`min`) and the highest (`max`) cost of an evaluation."""

    min: int
    max: int


class Entries(NamedTuple):
    """The sizes that the keys and values of a map, or the elements of a list, can have.

    Attributes:
        kind: "list" or "map".
        key: the sizes of the keys of a map, or of the indexes of a list.
        value: the sizes of the values of a map, or of the elements of a list.
    """

    kind: str
    key: Range
    value: Range

    def union(self, other: Entries | None) -> Entries | None:
        """Return ranges of sizes that cover those of both, or None if `other` is None."""
        return None if other is None else Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class _Local(NamedTuple):
    """A variable or the accumulator of a comprehension.

    Attributes:
        path: the path of its value.
        size: the sizes that the value can have; None if unknown.
        entries: the sizes of the value's elements, or keys and values; None if unknown, or if it is neither a list nor
            a map.
    """

    path: Path
    size: Range | None
    entries: Entries | None


def estimate(node: Node, variables: Mapping[str, CelType | DeclType]) -> CostEstimate:
    """Return the lowest and highest cost of evaluating a checked expression, given the types of its variables."""
    return CostEstimate(*Estimator(variables).cost(node))


class Estimator:
    """The estimation of one expression's cost, which visits each node once.

    It implements `Sizes` for the rules of calls.

    Args:
        variables: the type of each variable.
    """

    def __init__(self, variables: Mapping[str, CelType | DeclType]) -> None:
        self._variables = variables
        self._paths: dict[int, Path] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, Entries] = {}

    def cost(self, node: Node) -> Range:
        """Return the cost of a node and all nodes below it, and record the sizes of their values."""
        match node:
            case Literal():
                return ZERO
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
                return self._sum([e.value for e in node.entries]).plus(fixed(STRUCT_COST))
            case Comprehension():
                return self._comprehension(node)
        return ZERO

    def size_of(self, operand: Operand) -> Range:
        """Return the computed size of an operand, or else its declared size, or else `UNKNOWN`."""
        if operand.size is not None:
            return operand.size
        return self._declared(operand.path) or UNKNOWN

    def elements(self, operand: Operand) -> Operand | None:
        """Return an operand with the type and path of a list's elements, or None if their type is unknown.

        Upstream: listElementNode.
        """
        if not operand.type.params:
            return None
        return Operand(None, operand.type.params[0], (*operand.path, "@items") if operand.path else (), None)

    def unite_entries(self, node: Node, first: Node, second: Node) -> None:
        """Record for `node` that its value is a list or map made of elements (or keys and values) of two other values.

        Their sizes are ranges that cover those of both. Nothing is recorded if those of either are unknown.

        Args:
            node: a conditional or an addition.
            first: its first branch or operand.
            second: its second branch or operand.
        """
        left = self._entries_of(first)
        joined = None if left is None else left.union(self._entries_of(second))
        if joined is not None:
            self._entries[id(node)] = joined

    def _sum(self, nodes: list[Node]) -> Range:
        total = ZERO
        for node in nodes:
            total = total.plus(self.cost(node))
        return total

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _ident(self, node: Ident) -> Range:
        local = self._local(node.name)
        self._paths[id(node)] = (node.name,) if local is None else local.path
        return ONE

    def _select(self, node: Select) -> Range:
        if node.resolved is not None:
            self._paths[id(node)] = (node.resolved.name,)
            return ONE
        total = self.cost(node.operand)
        if node.test_only:
            return total
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return total.plus(ONE) if node.operand.type.kind in _SELECTABLE else total

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = self.cost(node.args[0])
            self._copy(node, node.args[0])
            return ONE.plus(cost)
        costs = [self.cost(arg) for arg in node.args]
        operands = [self._operand(arg) for arg in node.args]
        if not node.overloads:
            return ZERO
        total, target = ZERO, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._operand(node.target)
        cost, size = EMPTY, None
        for overload in node.overloads:
            overload_cost, result = call_cost(self, node, overload, target, operands, costs)
            cost = cost.union(overload_cost)
            if result is not None:
                size = result if size is None else size.union(result)
            if overload in ("index_list", "index_map"):
                entries = self._entries_of(node.args[0])
                size = None if entries is None else entries.value
                self._paths[id(node)] = (*self._path(node.args[0]), "@items" if overload == "index_list" else "@values")
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[id(node)] = size
        return total.plus(cost)

    def _list(self, node: ListNode) -> Range:
        total, size = ZERO, EMPTY if node.elements else ZERO
        for element in node.elements:
            total = total.plus(self.cost(element))
            size = size.union(self._size(element) or UNKNOWN)
        self._entries[id(node)] = Entries("list", ONE, size)
        return total.plus(fixed(LIST_COST))

    def _map(self, node: MapNode) -> Range:
        total = ZERO
        keys = values = EMPTY if node.entries else ZERO
        for entry in node.entries:
            assert entry.key is not None
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self._size(entry.key) or UNKNOWN)
            values = values.union(self._size(entry.value) or UNKNOWN)
        self._entries[id(node)] = Entries("map", keys, values)
        return total.plus(fixed(MAP_COST))

    def _comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push(node.accu, _Local(self._path(node.init), self._size(node.init), self._entries_of(node.init)))
        empty = isinstance(node.range, ListNode) and not node.range.elements
        if empty and isinstance(node.condition, Literal) and node.condition.value is False:
            total = total.plus(self.cost(node.result))
            self._locals[node.accu].pop()
            self._copy(node, node.result)
            return total
        for name, local in self._iterators(node).items():
            self._push(name, local)
        loop = self.cost(node.condition)
        step = self.cost(node.step)
        for name in (node.var, node.var2):
            if name:
                self._locals[name].pop()
        total = total.plus(self.cost(node.result))
        self._locals[node.accu].pop()
        count = self._size(node.range) or UNKNOWN
        total = total.plus(count.times(step.plus(loop)))
        if isinstance(node.init, Literal):
            size = self._size(node.init)
            if size is not None:
                self._sizes[id(node)] = size
        elif isinstance(node.init, (ListNode, MapNode)):
            self._sizes[id(node)] = count
            step_entries = self._entries_of(node.step)
            if step_entries is not None:
                self._entries[id(node)] = step_entries
        return total

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _iterators(self, node: Comprehension) -> dict[str, _Local]:
        """Return the variables of a comprehension by name, with the paths of their values and the known sizes."""
        entries, path = self._entries_of(node.range), self._path(node.range)
        kind = node.range.type.kind if entries is None else entries.kind
        key = None if entries is None else entries.key
        value = None if entries is None else entries.value
        keys = _Local((*path, "@indices" if kind == "list" else "@keys"), key, None)
        values = _Local((*path, "@items" if kind == "list" else "@values"), value, None)
        if node.var2:
            return {node.var: keys, node.var2: values}
        return {node.var: values if kind == "list" else keys}

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(id(node), ())

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        if path and path[0] in ("@result", "__result__"):
            path = ()
        return Operand(node, node.type, path, self._size(node))

    def _copy(self, target: Node, source: Node) -> None:
        """Record that `target` has the sizes of `source` and of its entries, as far as they are known."""
        size, entries = self._size(source), self._entries_of(source)
        if size is not None:
            self._sizes[id(target)] = size
        if entries is not None:
            self._entries[id(target)] = entries

    def _size(self, node: Node) -> Range | None:
        """Return the computed size of a node's value, or else its declared size, or None if neither is known."""
        known = self._sizes.get(id(node)) or _literal_size(node)
        if known is not None:
            return known
        known = self._declared(self._path(node))
        if known is not None:
            self._sizes[id(node)] = known
            return known
        if _is_scalar(node.type):
            return ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.size

    def _entries_of(self, node: Node) -> Entries | None:
        known = self._entries.get(id(node))
        if known is None and isinstance(node, Ident):
            local = self._local(node.name)
            known = None if local is None else local.entries
        return known

    def _declared(self, path: Path) -> Range | None:
        """Return the range from 0 to the largest size that the declared type of a variable allows at a path.

        As in upstream, a path that does not begin with a variable of a declared type is looked up in the type of the
        variable `self`, if there is one.

        Args:
            path: the name of the variable, and then the names of fields and `@items`, `@keys` or `@values`.

        Returns:
            None if no type is declared at the path.
        """
        if not path:
            return None
        decl: Any = self._variables.get(path[0])
        if not isinstance(decl, DeclType):
            decl = self._variables.get("self")
        if not isinstance(decl, DeclType):
            return None
        for name in path[1:]:
            if name in ("@items", "@values"):
                decl = decl.elem
            elif name == "@keys":
                decl = decl.key
            else:
                decl = (decl.fields or {}).get(name) or (decl.elem if decl.by_name else None)
            if decl is None:
                return None
        return Range(0, decl.max_elements if decl.max_elements >= 0 else MAX + 1 + decl.max_elements)


def _literal_size(node: Node) -> Range | None:
    match node:
        case Literal(value=str() | bytes() as value):
            return fixed(len(value))
        case Literal():
            return ONE
        case ListNode():
            return fixed(len(node.elements))
        case MapNode():
            return fixed(len(node.entries))
    return None


def _is_scalar(kind: CelType) -> bool:
    if kind.kind == "opaque" and kind.name == "optional_type":
        return _is_scalar(kind.params[0])
    return kind.kind in _SCALARS
