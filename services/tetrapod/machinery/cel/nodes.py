"""The abstract syntax tree.

The checker stores a type on each node, and on calls the overloads that they may resolve to.

`at` is the offset, in code points, of the token at which messages about the node point.

Upstream: cel-go common/ast.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.cel.types import ERROR, CelType


class Node:
    """A node of the tree.

    Attributes:
        at: the offset in code points.
        type: the type, which the checker sets.
        overloads: the overloads that a call may resolve to, which the checker sets.
    """

    __slots__ = ("at", "overloads", "type")

    def __init__(self, at: int) -> None:
        self.at = at
        self.type: CelType = ERROR
        self.overloads: tuple[str, ...] = ()


class Literal(Node):
    """A constant, with its value as evaluation returns it."""

    __slots__ = ("value",)

    def __init__(self, at: int, value: Any) -> None:
        super().__init__(at)
        self.value = value


class Ident(Node):
    """An identifier. The checker sets `type_name` to the type if the identifier names one, such as `int`."""

    __slots__ = ("name", "type_name")

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name
        self.type_name: CelType | None = None


class Select(Node):
    """The selection of a field.

    Attributes:
        operand: the expression before the dot.
        field: the name of the field.
        test_only: whether the node is `has(operand.field)`.
        resolved: the identifier that the checker sets if the whole chain of selections is the dotted name of a variable
            or type; otherwise None.
    """

    __slots__ = ("field", "operand", "resolved", "test_only")

    def __init__(self, at: int, operand: Node, field: str, test_only: bool = False) -> None:
        super().__init__(at)
        self.operand = operand
        self.field = field
        self.test_only = test_only
        self.resolved: Ident | None = None


class Call(Node):
    """A call of a function or operator.

    Attributes:
        function: the name of the function, such as `_+_` for an operator.
        args: the arguments without the receiver.
        target: the receiver of a member function; None for others.
    """

    __slots__ = ("args", "function", "target")

    def __init__(self, at: int, function: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(at)
        self.function = function
        self.args = args
        self.target = target

    @property
    def operands(self) -> list[Node]:
        """Return the arguments, preceded by the receiver if there is one."""
        return self.args if self.target is None else [self.target, *self.args]


class ListNode(Node):
    """A list literal.

    Attributes:
        elements: the elements.
        optional: the indexes of the elements written as `?element`.
    """

    __slots__ = ("elements", "optional")

    def __init__(self, at: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(at)
        self.elements = elements
        self.optional = optional


class Entry:
    """An entry of a map or a field of an object.

    Attributes:
        at: the offset in code points.
        key: the key of a map's entry; None for a field.
        name: the name of a field; "" for an entry.
        value: the value.
        optional: whether it was written with `?`.
    """

    __slots__ = ("at", "key", "name", "optional", "value")

    def __init__(self, at: int, key: Node | None, name: str, value: Node, optional: bool) -> None:
        self.at = at
        self.key = key
        self.name = name
        self.value = value
        self.optional = optional


class MapNode(Node):
    """A map literal. `entries` are in the order of the text."""

    __slots__ = ("entries",)

    def __init__(self, at: int, entries: list[Entry]) -> None:
        super().__init__(at)
        self.entries = entries


class StructNode(Node):
    """An object, such as `Object.spec{…}`.

    Attributes:
        type_name: the name of its type, as it was written.
        entries: the fields that are set.
    """

    __slots__ = ("entries", "type_name")

    def __init__(self, at: int, type_name: str, entries: list[Entry]) -> None:
        super().__init__(at)
        self.type_name = type_name
        self.entries = entries


class Comprehension(Node):
    """The expansion of a macro such as `all`: a fold over a list or map.

    Attributes:
        range: the list or map.
        var: the name of the first variable: the element or key, or with two variables the index or key.
        var2: the name of the second variable; "" if there is only one.
        accu: the name of the accumulator.
        init: the first value of the accumulator.
        condition: whether the loop goes on, evaluated before each step.
        step: the next value of the accumulator.
        result: the value of the whole node, computed from the accumulator.
    """

    __slots__ = ("accu", "condition", "init", "range", "result", "step", "var", "var2")

    def __init__(
        self,
        at: int,
        range_: Node,
        variables: tuple[str, str],
        accu: str,
        init: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(at)
        self.range = range_
        self.var, self.var2 = variables
        self.accu = accu
        self.init = init
        self.condition = condition
        self.step = step
        self.result = result


def children(node: Node) -> list[Node]:
    """Return the child nodes of a node, in source order where they have one.

    A selection that the checker resolved to a dotted name has none.
    """
    match node:
        case Select():
            return [node.operand] if node.resolved is None else []
        case Call():
            return node.operands
        case ListNode():
            return node.elements
        case MapNode() | StructNode():
            return [part for entry in node.entries for part in (entry.key, entry.value) if part is not None]
        case Comprehension():
            return [node.range, node.init, node.condition, node.step, node.result]
    return []


def selects(node: Node, field: str, variable: str = "") -> bool:
    """Return whether a field is selected anywhere in a tree (`x.field`, `x.?field`, `has(x.field)`).

    Args:
        node: the root of the tree.
        field: the name of the field.
        variable: count only selections directly from this variable; "" means from anything.
    """
    pending = [node]
    while pending:
        current = pending.pop()
        match current:
            case Select(field=name, operand=operand) if name == field:
                pass
            case Call(function="_?._", args=[operand, Literal(value=name)]) if name == field:
                pass
            case _:
                pending.extend(children(current))
                continue
        if not variable or (isinstance(operand, Ident) and operand.name == variable):
            return True
        pending.extend(children(current))
    return False


def larger_than(node: Node, size: int) -> bool:
    """Return whether a tree has more than `size` nodes, visiting at most `size` of them."""
    pending = [node]
    for _ in range(size):
        if not pending:
            return False
        pending.extend(children(pending.pop()))
    return bool(pending)


def copy(node: Node) -> Node:
    """Return a deep copy of a tree that the checker has not seen yet: types and overloads are not copied."""
    match node:
        case Literal():
            return Literal(node.at, node.value)
        case Ident():
            return Ident(node.at, node.name)
        case Select():
            return Select(node.at, copy(node.operand), node.field, node.test_only)
        case Call():
            target = None if node.target is None else copy(node.target)
            return Call(node.at, node.function, [copy(a) for a in node.args], target)
        case ListNode():
            return ListNode(node.at, [copy(e) for e in node.elements], node.optional)
        case MapNode():
            return MapNode(node.at, [_copy_entry(e) for e in node.entries])
        case StructNode():
            return StructNode(node.at, node.type_name, [_copy_entry(e) for e in node.entries])
        case Comprehension():
            parts = [copy(n) for n in (node.init, node.condition, node.step, node.result)]
            return Comprehension(node.at, copy(node.range), (node.var, node.var2), node.accu, *parts)
    raise TypeError(type(node))


def _copy_entry(entry: Entry) -> Entry:
    return Entry(
        entry.at, None if entry.key is None else copy(entry.key), entry.name, copy(entry.value), entry.optional
    )
