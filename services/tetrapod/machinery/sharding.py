"""Shard selectors: the parameter `shardSelector` of lists and watches, which selects objects by the hash of a field.

    shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')

The text has the syntax of CEL, but is not evaluated: ranges of one field, joined by `||`, are all that is allowed.
Upstream: staging/src/k8s.io/apiserver/pkg/sharding/parser.go, staging/src/k8s.io/apimachinery/pkg/sharding
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tetrapod.machinery.cel.errors import CompileError
from tetrapod.machinery.cel.nodes import Call, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from tetrapod.machinery.cel.values import Uint
from tetrapod.machinery.golang.quoting import go_quote

UID: Final = "object.metadata.uid"
NAMESPACE: Final = "object.metadata.namespace"
_EVERYTHING: Final = "0x10000000000000000"
"""2^64, the largest end of a range."""
_MOST_DIGITS: Final = 17
_DIGITS: Final = 16
_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = (1 << 64) - 1
_KINDS: Final[tuple[tuple[type[Node], int], ...]] = (
    (Call, 1),
    (Ident, 3),
    (ListNode, 4),
    (Literal, 5),
    (MapNode, 6),
    (Select, 7),
    (StructNode, 8),
)
"""cel-go's number of each kind of expression, which error texts contain."""
_GO_TYPES: Final[tuple[tuple[type[Any], str], ...]] = (
    (Uint, "uint64"),
    (bool, "bool"),
    (int, "int64"),
    (float, "float64"),
    (bytes, "[]uint8"),
)
_SYNTAX_ERROR: Final = "Syntax error: "


class ShardSelectorError(ValueError):
    """An invalid shard selector. The text is upstream's."""


class ShardRange(NamedTuple):
    """A range of hashes of a field.

    Attributes:
        field: `UID` or `NAMESPACE`.
        start: the lower bound, which is included, as 16 hexadecimal digits after `0x`.
        end: the upper bound, which is excluded, likewise, or `0x10000000000000000`.
    """

    field: str
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class ShardSelector:
    """A parsed shard selector: at least one range of hashes, all of the same field."""

    ranges: tuple[ShardRange, ...]

    @property
    def field(self) -> str:
        """The field that is hashed: `UID` or `NAMESPACE`."""
        return self.ranges[0].field

    def contains(self, value: str) -> bool:
        """Return whether the hash of a value of the field is in one of the ranges."""
        hashed = fnv1a(value)
        return any(int(part.start, 16) <= hashed < int(part.end, 16) for part in self.ranges)

    def __str__(self) -> str:
        return " || ".join(f"shardRange({part.field}, '{part.start}', '{part.end}')" for part in self.ranges)


def fnv1a(value: str) -> int:
    """Return the 64-bit FNV-1a hash of a text in UTF-8."""
    hashed = _OFFSET
    for byte in value.encode():
        hashed = (hashed ^ byte) * _PRIME & _MASK
    return hashed


def parse(text: str) -> ShardSelector:
    """Parse a shard selector.

    Raises:
        ShardSelectorError: the text is empty or invalid.
    """
    expression = text.strip()
    if not expression:
        raise ShardSelectorError("empty shard selector is not allowed; omit the parameter for unfiltered lists")
    ranges = tuple(_ranges(_parsed(expression)))
    for other in ranges[1:]:
        if other.field != ranges[0].field:
            fields = f"{go_quote(ranges[0].field)} and {go_quote(other.field)}"
            raise ShardSelectorError(f"all shard ranges must use the same field, got {fields}")
    return ShardSelector(ranges)


def _parsed(expression: str) -> Node:
    from tetrapod.machinery.cel.parsing import parsed
    from tetrapod.machinery.cel.source import Source

    try:
        return parsed(expression, Source(expression), core=True)
    except CompileError as error:
        messages = [issue.message for issue in error.issues]
    first = next((message for message in messages if message.startswith(_SYNTAX_ERROR)), messages[0])
    raise ShardSelectorError(f"CEL parse error: {first}")


def _ranges(node: Node) -> list[ShardRange]:
    if not isinstance(node, Call):
        kind = f"unexpected expression kind {_kind(node)}"
        raise ShardSelectorError(f"{kind}; expected shardRange() call or || operator")
    if node.function == "_||_":
        return [found for operand in node.args for found in _ranges(operand)]
    if node.function != "shardRange":
        function = f"unsupported function {go_quote(node.function)}"
        raise ShardSelectorError(f"{function}; only shardRange() and || are allowed")
    return [_range(node)]


def _range(call: Call) -> ShardRange:
    if len(call.args) != 3:
        raise ShardSelectorError(f"shardRange() requires exactly 3 arguments, got {len(call.args)}")
    field = _path(call.args[0])
    if field not in (UID, NAMESPACE):
        raise ShardSelectorError(f"unsupported field path {go_quote(field)}; supported: {UID}, {NAMESPACE}")
    start, end = _bound(call.args[1], "hexStart"), _bound(call.args[2], "hexEnd")
    if int(start, 16) >= int(end, 16):
        raise ShardSelectorError(f"shard range start {start} must be less than end {end}")
    return ShardRange(field, start, end)


def _path(node: Node) -> str:
    names: list[str] = []
    while isinstance(node, Select):
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        expected = "expected field path (e.g. object.metadata.uid)"
        raise ShardSelectorError(f"shardRange() first argument: {expected}, got expression kind {_kind(node)}")
    return ".".join([node.name, *reversed(names)])


def _bound(node: Node, name: str) -> str:
    """Return the text of a bound. `name` is what error texts call it."""
    if not isinstance(node, Literal):
        raise ShardSelectorError(f"{name} must be a string literal (e.g. '0xff'), got expression kind {_kind(node)}")
    text = node.value
    if not isinstance(text, str):
        go_type = next((go for kind, go in _GO_TYPES if isinstance(text, kind)), "structpb.NullValue")
        raise ShardSelectorError(f"{name} must be a string literal, got {go_type}")
    quoted = go_quote(text)
    if not text.startswith("0x"):
        raise ShardSelectorError(f"{name} must have '0x' prefix, got {quoted}")
    digits = text[2:]
    if not digits:
        raise ShardSelectorError(f"{name}: hex value is required after '0x'")
    length = len(digits.encode())
    if length > _MOST_DIGITS:
        limit = f"{length} chars, max {_MOST_DIGITS}"
        raise ShardSelectorError(f"{name}: hex value too long ({limit}): {go_quote(digits)}")
    if (other := re.search(r"[^0-9a-f]", digits)) is not None:
        raise ShardSelectorError(f"{name}: invalid hex character {go_quote(other[0])} in {quoted}")
    if length == _MOST_DIGITS:
        if text != _EVERYTHING:
            expected = f"17-digit hex value must be '{_EVERYTHING}' (2^64)"
            raise ShardSelectorError(f"{name}: {expected}, got {quoted}")
    elif length != _DIGITS:
        padded = go_quote(f"0x{digits.rjust(_DIGITS, '0')}")
        expected = f"{name} must be a 0x-prefixed 16-digit hex value"
        raise ShardSelectorError(f"{expected}, got {quoted} (did you mean {padded}?)")
    return text


def _kind(node: Node) -> int:
    return next(number for kind, number in _KINDS if isinstance(node, kind))
