"""The static check of `format` calls with a literal format string: their arguments' types must match the clauses.

Upstream: cel-go ext/formatting.go, stringFormatValidator.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.cel.library.formatting import BadFormat, Clause, clauses
from tetrapod.machinery.cel.nodes import Call, ListNode, Literal, MapNode, Node

_STRINGS: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given"
)
_SHOWN: Final = (
    "list",
    "map",
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "timestamp",
    "bytes",
    "duration",
    "type",
    "null",
)
_ALLOWED: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "d": (("int", "uint"), "decimal clause can only be used on integers, was given"),
    "f": (("double", "string"), "fixed-point clause can only be used on doubles, was given"),
    "e": (("double", "string"), "scientific clause can only be used on doubles, was given"),
    "b": (("int", "uint", "bool"), "only integers and bools can be formatted as binary, was given"),
    "x": (
        ("int", "uint", "string", "bytes"),
        "only integers, byte buffers, and strings can be formatted as hex, was given",
    ),
    "X": (
        ("int", "uint", "string", "bytes"),
        "only integers, byte buffers, and strings can be formatted as hex, was given",
    ),
    "o": (("int", "uint"), "octal clause can only be used on integers, was given"),
}


def format_problems(call: Call) -> list[tuple[int, str]]:
    """Return the first error of a call of `format` whose format and list are literals, or [].

    The list has at most one item: the offset of the error in code points, and its message. For other calls it is empty.
    """
    target = call.target
    if not isinstance(target, Literal) or not isinstance(target.value, str) or not isinstance(call.args[0], ListNode):
        return []
    args = call.args[0].elements
    used = 0
    try:
        for piece in clauses(target.value, 1 << 30):
            if isinstance(piece, Clause):
                if used >= len(args):
                    return [(call.at, f"index {used} out of range")]
                problem = _problem(piece, args[used])
                if problem is not None:
                    return [(problem[0], f"error during formatting: {problem[1]}")]
                used += 1
    except BadFormat as error:
        return [(call.at, str(error))]
    if len(args) > used:
        return [(call.at, f"too many arguments supplied to string.format (expected {used}, got {len(args)})")]
    return []


def _problem(clause: Clause, arg: Node) -> tuple[int, str] | None:
    if clause.letter == "s":
        unformattable = _unshown(arg)
        return None if unformattable is None else (unformattable.at, f"{_STRINGS} {unformattable.type.name}")
    kinds, text = _ALLOWED[clause.letter]
    return None if arg.type.kind in ("dyn", *kinds) else (arg.at, f"{text} {arg.type.name}")


def _unshown(node: Node) -> Node | None:
    """Return the node itself or the first node within a list or map literal that `%s` cannot format, or None."""
    if node.type.kind not in ("dyn", *_SHOWN):
        return node
    parts: list[Node] = []
    if isinstance(node, ListNode):
        parts = node.elements
    elif isinstance(node, MapNode):
        parts = [part for entry in node.entries for part in (entry.key, entry.value) if part is not None]
    return next((unformattable for part in parts if (unformattable := _unshown(part)) is not None), None)
