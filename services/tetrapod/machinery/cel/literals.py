"""Checks of literals in an expression that passed the type checker.

They cover durations, timestamps, patterns, and the types in lists and maps.

Upstream: cel-go cel/validator.go, with the validators that Kubernetes enables, and the validator of ext/formatting.go.
"""

from __future__ import annotations

from typing import Any

from tetrapod.machinery.cel.assignable import unwrapped
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.format_check import format_problems
from tetrapod.machinery.cel.nodes import Call, ListNode, Literal, MapNode, Node, children
from tetrapod.machinery.cel.types import CelType
from tetrapod.machinery.golang.regular_expressions import BadPattern, compile_pattern


def literal_problems(root: Node) -> list[tuple[int, str]]:
    """Return the offset and message of each invalid literal, in the order of upstream's validators.

    The offsets are in code points.

    Args:
        root: the root of the checked tree.
    """
    nodes = _preorder(root)
    calls = [node for node, _ in nodes if isinstance(node, Call)]
    problems: list[tuple[int, str]] = []
    for name in ("duration", "timestamp", "matches"):
        literal_args = [call.args[0] for call in calls if call.function == name and call.args]
        invalid = [arg for arg in literal_args if isinstance(arg, Literal) and not _valid(name, arg.value)]
        problems += [(arg.at, f"invalid {name} argument") for arg in invalid]
    for node, formatted in nodes:
        if isinstance(node, ListNode) and not formatted:
            problems += _list_problems(node)
    for node, formatted in nodes:
        if isinstance(node, MapNode) and not formatted:
            problems += _map_problems(node)
    for call in calls:
        if call.function == "format":
            problems += format_problems(call)
    return problems


def _preorder(root: Node) -> list[tuple[Node, bool]]:
    """Return all nodes in preorder, each with whether it is inside a call of `format`.

    Lists in the arguments of `format` may have elements of different types.
    """
    result: list[tuple[Node, bool]] = []
    todo = [(root, False)]
    while todo:
        node, formatted = todo.pop()
        result.append((node, formatted))
        formatted = formatted or (isinstance(node, Call) and node.function == "format")
        todo += [(child, formatted) for child in reversed(children(node))]
    return result


def _valid(name: str, value: Any) -> bool:
    if name == "matches":
        try:
            compile_pattern(value if isinstance(value, str) else "")
        except BadPattern:
            return False
        return True
    from tetrapod.machinery.cel.library.registry import implementation

    try:
        implementation(name)(value)
    except EvaluationError:
        return False
    return True


def _same(a: CelType, b: CelType) -> bool:
    """Return whether two types are equal except for the names of type parameters."""
    if a.kind != b.kind or len(a.params) != len(b.params) or (a.kind != "param" and a.name != b.name):
        return False
    return all(_same(x, y) for x, y in zip(a.params, b.params, strict=True))


def _list_problems(node: ListNode) -> list[tuple[int, str]]:
    first: CelType | None = None
    for i, element in enumerate(node.elements):
        kind = unwrapped(element.type)[0] if i in node.optional else element.type
        if first is None:
            first = kind
        elif not _same(first, kind):
            return [(element.at, f"expected type '{first}' but found '{kind}'")]
    return []


def _map_problems(node: MapNode) -> list[tuple[int, str]]:
    problems: list[tuple[int, str]] = []
    first: tuple[CelType, CelType] | None = None
    for entry in node.entries:
        assert entry.key is not None
        kinds = (entry.key.type, unwrapped(entry.value.type)[0] if entry.optional else entry.value.type)
        if first is None:
            first = kinds
            continue
        for part, expected, kind in zip((entry.key, entry.value), first, kinds, strict=True):
            if not _same(expected, kind):
                problems.append((part.at, f"expected type '{expected}' but found '{kind}'"))
    return problems
