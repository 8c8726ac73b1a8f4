"""Macros: calls that the parser expands to a larger tree, mostly to a comprehension.

Upstream: cel-go parser/macro.go, cel/library.go (optionals), ext/comprehensions.go and ext/lists.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.machinery.cel.nodes import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    copy,
    larger_than,
)

ACCU: Final = "@result"
_OVERWRITES: Final = "iteration variable overwrites accumulator variable"
_FORBIDDEN: Final = (ACCU, "__result__")
_SORT_INPUT: Final = "@__sortBy_input__"
_MOST_COPIED: Final = 10_000
"""The largest operand, in nodes, that a macro copies. Without a limit, a chain of such macros would double the tree
with each.
"""

Macro = Callable[[int, Node | None, list[Node]], Node]
"""A function that takes the call's offset, its receiver and its arguments, and returns the expanded tree. Raises
MacroError.
"""


class MacroError(ValueError):
    """The error for a macro with invalid arguments. `at` is the offset in code points."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at
        self.message = message


def _target(target: Node | None) -> Node:
    assert target is not None  # by the third part of the keys of `MACROS`
    return target


def _has(at: int, target: Node | None, args: list[Node]) -> Node:
    argument = args[0]
    if not isinstance(argument, Select) or argument.test_only:
        raise MacroError(argument.at, "invalid argument to has() macro")
    return Select(at, argument.operand, argument.field, test_only=True)


def _one(args: list[Node], message: str) -> tuple[str, str]:
    """Return the names of the variables of a macro with one variable: its name, and "" for the second.

    Raises:
        MacroError: the first argument is not an identifier (`message`), or has the name of the accumulator.
    """
    name = args[0]
    if not isinstance(name, Ident):
        raise MacroError(name.at, message)
    if name.name in _FORBIDDEN:
        raise MacroError(name.at, _OVERWRITES)
    return name.name, ""


def _two(args: list[Node]) -> tuple[str, str]:
    """Return the names of the variables of a macro with two variables, which are its first arguments.

    Raises:
        MacroError: an argument is not an identifier or has the name of the accumulator, or both are equal.
    """
    first, second = args[0], args[1]
    for name in (first, second):
        if not isinstance(name, Ident):
            raise MacroError(name.at, "argument must be a simple name")
    assert isinstance(first, Ident) and isinstance(second, Ident)
    if first.name == second.name:
        raise MacroError(second.at, f"duplicate variable name: {first.name}")
    for name in (first, second):
        if name.name in _FORBIDDEN:
            raise MacroError(name.at, _OVERWRITES)
    return first.name, second.name


def _variables(args: list[Node]) -> tuple[tuple[str, str], list[Node]]:
    """Return the names of a macro's variables ("" for a second one that it does not have), and its other arguments.

    Args:
        args: all arguments: one or two variables and the predicate.

    Raises:
        MacroError: a variable is invalid.
    """
    if len(args) == 2:
        return _one(args, "argument must be a simple name"), args[1:]
    return _two(args), args[2:]


def _all(at: int, target: Node | None, args: list[Node]) -> Node:
    names, (predicate,) = _variables(args)
    condition = Call(at, "@not_strictly_false", [Ident(at, ACCU)])
    step = Call(at, "_&&_", [Ident(at, ACCU), predicate])
    return Comprehension(at, _target(target), names, ACCU, Literal(at, True), condition, step, Ident(at, ACCU))


def _exists(at: int, target: Node | None, args: list[Node]) -> Node:
    names, (predicate,) = _variables(args)
    condition = Call(at, "@not_strictly_false", [Call(at, "!_", [Ident(at, ACCU)])])
    step = Call(at, "_||_", [Ident(at, ACCU), predicate])
    return Comprehension(at, _target(target), names, ACCU, Literal(at, False), condition, step, Ident(at, ACCU))


def _exists_one(at: int, target: Node | None, args: list[Node]) -> Node:
    names, (predicate,) = _variables(args)
    more = Call(at, "_+_", [Ident(at, ACCU), Literal(at, 1)])
    step = Call(at, "_?_:_", [predicate, more, Ident(at, ACCU)])
    result = Call(at, "_==_", [Ident(at, ACCU), Literal(at, 1)])
    return Comprehension(at, _target(target), names, ACCU, Literal(at, 0), Literal(at, True), step, result)


def _appending(at: int, target: Node | None, names: tuple[str, str], keep: Node | None, element: Node) -> Node:
    """Return a comprehension that makes a list of the values of `element`, for the elements for which `keep` is true.

    Args:
        at: the offset of the macro.
        target: the range of the comprehension.
        names: the variables.
        keep: the filter; None keeps all.
        element: the element to append.
    """
    step: Node = Call(at, "_+_", [Ident(at, ACCU), ListNode(at, [element])])
    if keep is not None:
        step = Call(at, "_?_:_", [keep, step, Ident(at, ACCU)])
    return Comprehension(at, _target(target), names, ACCU, ListNode(at, []), Literal(at, True), step, Ident(at, ACCU))


def _map(at: int, target: Node | None, args: list[Node]) -> Node:
    names = _one(args, "argument is not an identifier")
    return _appending(at, target, names, args[1] if len(args) == 3 else None, args[-1])


def _filter(at: int, target: Node | None, args: list[Node]) -> Node:
    return _appending(at, target, _one(args, "argument is not an identifier"), args[1], args[0])


def _transform_list(at: int, target: Node | None, args: list[Node]) -> Node:
    return _appending(at, target, _two(args), args[2] if len(args) == 4 else None, args[-1])


def _inserting(at: int, target: Node | None, args: list[Node], inserted: Callable[[str], list[Node]]) -> Node:
    """Return a comprehension that makes a map, by calling `cel.@mapInsert` in each step.

    Args:
        at: the offset of the macro.
        target: the range of the comprehension.
        args: the arguments of the macro: two variables, perhaps a filter, and the value.
        inserted: receives the name of the first variable and returns the arguments of `cel.@mapInsert` that follow the
            accumulator: a key and a value, or a map.

    Raises:
        MacroError: a variable is not an identifier or has the name of the accumulator, or both are equal.
    """
    names = _two(args)
    step: Node = Call(at, "cel.@mapInsert", [Ident(at, ACCU), *inserted(names[0])])
    if len(args) == 4:
        step = Call(at, "_?_:_", [args[2], step, Ident(at, ACCU)])
    return Comprehension(at, _target(target), names, ACCU, MapNode(at, []), Literal(at, True), step, Ident(at, ACCU))


def _transform_map(at: int, target: Node | None, args: list[Node]) -> Node:
    return _inserting(at, target, args, lambda key: [Ident(at, key), args[-1]])


def _transform_map_entry(at: int, target: Node | None, args: list[Node]) -> Node:
    return _inserting(at, target, args, lambda key: [args[-1]])


def _bound(at: int, name: str, value: Node, result: Node, step: str) -> Node:
    """Return `result` with the variable `name` bound to `value`, as a fold over an empty list.

    The variable is the accumulator of the fold, whose step is never evaluated.

    Args:
        at: the offset of the macro in code points.
        name: the name of the variable.
        value: the value of the variable.
        result: the expression that uses the variable.
        step: the name of the variable that the step refers to.
    """
    return Comprehension(
        at, ListNode(at, []), ("#unused", ""), name, value, Literal(at, False), Ident(at, step), result
    )


def bind(at: int, target: Node | None, args: list[Node]) -> Node | None:
    """Expand `cel.bind(name, value, result)`, or return None if the receiver is not `cel`.

    Only some environments allow it.

    Args:
        at: the offset of the call in code points.
        target: the receiver.
        args: the three arguments.

    Raises:
        MacroError: the first argument is not an identifier.
    """
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].at, "cel.bind() variable names must be simple identifiers")
    return _bound(at, args[0].name, args[1], args[2], args[0].name)


def _opt_map(at: int, target: Node | None, args: list[Node]) -> Node:
    return _optional(at, target, args, "optMap", lambda bound: Call(at, "optional.of", [bound]))


def _opt_flat_map(at: int, target: Node | None, args: list[Node]) -> Node:
    return _optional(at, target, args, "optFlatMap", lambda bound: bound)


def _optional(at: int, target: Node | None, args: list[Node], name: str, wrap: Callable[[Node], Node]) -> Node:
    variable, operand = args[0], _target(target)
    if not isinstance(variable, Ident):
        raise MacroError(variable.at, f"{name}() variable name must be a simple identifier")
    if larger_than(operand, _MOST_COPIED):
        raise MacroError(at, f"{name}() is called on too large an expression")
    bound = _bound(at, variable.name, Call(at, "value", [], copy(operand)), args[1], variable.name)
    return Call(at, "_?_:_", [Call(at, "hasValue", [], operand), wrap(bound), Call(at, "optional.none", [])])


def _sort_by(at: int, target: Node | None, args: list[Node]) -> Node:
    operand = _target(target)
    if not isinstance(operand, (ListNode, Select, Ident, Comprehension, Call)):
        text = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(operand.at, text)
    keys = _map(at, Ident(at, _SORT_INPUT), args)
    call = Call(at, "@sortByAssociatedKeys", [keys], Ident(at, _SORT_INPUT))
    return _bound(at, _SORT_INPUT, operand, call, _SORT_INPUT)


MACROS: Final[dict[tuple[str, int, bool], Macro]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all,
    ("all", 3, True): _all,
    ("exists", 2, True): _exists,
    ("exists", 3, True): _exists,
    ("exists_one", 2, True): _exists_one,
    ("exists_one", 3, True): _exists_one,
    ("existsOne", 3, True): _exists_one,
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("optMap", 2, True): _opt_map,
    ("optFlatMap", 2, True): _opt_flat_map,
    ("sortBy", 2, True): _sort_by,
}
"""The macros by name, number of arguments, and whether they have a receiver."""
