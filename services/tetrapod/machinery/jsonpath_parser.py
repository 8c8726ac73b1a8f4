"""The parser of kubectl's JSONPath. Upstream: k8s.io/client-go/util/jsonpath/parser.go, including its error texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tetrapod.machinery.golang.quoting import SIMPLE_ESCAPES

_TERMINATORS: Final = frozenset(" \t\r\n.,[]$@{}")
_MAX_NESTING: Final = 100
_dict_key = re.compile("'([^']*)'").fullmatch
_slice = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?", re.ASCII).fullmatch
_comparison = re.compile("([^!<>=]+)([!<>=]+)(.+)").fullmatch
_escape = re.compile(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.?))", re.DOTALL
)


class JsonPathError(ValueError):
    """The error for an expression that is invalid, or whose evaluation on an object fails."""


@dataclass(slots=True)
class ListNode:
    """A sequence of nodes. In an expression, each node is applied to the values that the node before it selected."""

    nodes: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class LiteralNode:
    """A string, number or boolean of an expression, or a text between expressions; `value` is its value."""

    value: str | int | float | bool


@dataclass(slots=True)
class FieldNode:
    """The selection of one field of objects: `.name`."""

    name: str


@dataclass(slots=True)
class IdentifierNode:
    """A bare word of an expression: `range` or `end`. Other words are errors at evaluation."""

    name: str


@dataclass(slots=True)
class ArrayNode:
    """The selection of array elements by an index `[1]` or a slice `[start:end:step]`.

    Missing parts are None. For an index, `start` is the index, `end` the next one, and `derived_end` is True.
    """

    start: int | None
    end: int | None
    step: int | None
    derived_end: bool = False


@dataclass(slots=True)
class FilterNode:
    """A filter `[?(left operator right)]`. For `[?(left)]` the operator is "exists", and `right` is empty."""

    left: ListNode
    right: ListNode
    operator: str


@dataclass(slots=True)
class WildcardNode:
    """The selection of all elements of arrays and all fields of objects: `*`."""


@dataclass(slots=True)
class RecursiveNode:
    """A recursive descent `..`: the selection of all arrays and objects at any depth."""


@dataclass(slots=True)
class UnionNode:
    """Several selections (`parts`) whose values are concatenated in order: `[0,2]`."""

    parts: list[ListNode]


Node: TypeAlias = (
    ListNode
    | LiteralNode
    | FieldNode
    | IdentifierNode
    | ArrayNode
    | FilterNode
    | WildcardNode
    | RecursiveNode
    | UnionNode
)


def parse_template(text: str, depth: int = 0) -> ListNode:
    """Parse a template: text, with expressions in braces.

    Args:
        text: the template.
        depth: how many filters and unions enclose it; those are parsed as templates of their own.

    Raises:
        JsonPathError: the template is invalid or nests too deeply.
    """
    if depth > _MAX_NESTING:
        raise JsonPathError("expression nests too deeply")
    return _Parser(text, depth).template()


class _Parser:
    """A recursive-descent parser of one template; its methods append nodes and raise `JsonPathError`."""

    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._at = 0
        self._depth = depth

    def template(self) -> ListNode:
        """Parse the whole template into a list of literal texts and, for each expression, a `ListNode`."""
        root = ListNode()
        while self._at < len(self._text):
            start = self._at
            brace = self._text.find("{", start)
            self._at = len(self._text) if brace < 0 else brace
            if self._at > start:
                root.nodes.append(LiteralNode(self._text[start : self._at]))
            if brace >= 0:
                self._at += 1
                inner = ListNode()
                root.nodes.append(inner)
                self._action(inner)
        return root

    def _nested(self, text: str) -> ListNode:
        inner = parse_template(f"{{{text}}}", self._depth + 1).nodes[0]
        assert isinstance(inner, ListNode)
        return inner

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _action(self, into: ListNode) -> None:
        """Parse an expression after its opening brace, including the closing one, and append its nodes to `into`.

        Args:
            into: the list node that receives the nodes.

        Raises:
            JsonPathError: the expression is invalid or has no closing brace.
        """
        while True:
            if self._text.startswith("[?(", self._at):
                self._filter(into)
                continue
            if self._text.startswith("..", self._at):
                self._recursive(into)
                continue
            char = self._peek()
            self._at += 1
            match char:
                case "}":
                    return
                case "" | "\r" | "\n":
                    raise JsonPathError("unclosed action")
                case " " | "@" | "$":
                    pass
                case "[":
                    self._array(into)
                case '"' | "'":
                    self._quoted(into, char)
                case ".":
                    self._field(into)
                case _:
                    self._at -= 1
                    self._word(into, char)

    def _word(self, into: ListNode, char: str) -> None:
        if char in "+-" or char.isdecimal():
            self._number(into)
        elif char == "_" or char.isalpha():
            start = self._at
            while self._at < len(self._text) and self._text[self._at] not in _TERMINATORS:
                self._at += 1
            word = self._text[start : self._at]
            into.nodes.append(LiteralNode(word == "true") if word in ("true", "false") else IdentifierNode(word))
        else:
            shown = f"U+{ord(char):04X}" + (f" '{char}'" if char.isprintable() else "")
            raise JsonPathError(f"unrecognized character in action: {shown}")

    def _number(self, into: ListNode) -> None:
        start = self._at
        if self._peek() in "+-":
            self._at += 1
        while (char := self._peek()) and (char == "." or char.isdecimal()):
            self._at += 1
        text = self._text[start : self._at]
        try:
            into.nodes.append(LiteralNode(float(text) if "." in text else int(text)))
        except ValueError:
            raise JsonPathError(f"cannot parse number {text}") from None

    def _recursive(self, into: ListNode) -> None:
        if into.nodes and isinstance(into.nodes[-1], RecursiveNode):
            raise JsonPathError("invalid multiple recursive descent")
        self._at += 2
        into.nodes.append(RecursiveNode())
        if (char := self._peek()) and (char == "_" or char.isalnum()):
            self._field(into)

    def _field(self, into: ListNode) -> None:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _TERMINATORS:
            self._at += 2 if self._text[self._at] == "\\" else 1
        self._at = min(self._at, len(self._text))
        name = self._text[start : self._at]
        into.nodes.append(WildcardNode() if name == "*" else FieldNode(name.replace("\\", "")))

    def _array(self, into: ListNode) -> None:
        end = self._text.find("]", self._at)
        if end < 0 or "\n" in self._text[self._at : end]:
            raise JsonPathError("unterminated array")
        text = self._text[self._at : end]
        self._at = end + 1
        if text == "*":
            text = ":"
        if "," in text:
            into.nodes.append(UnionNode([self._nested(f"[{part.strip(' ')}]") for part in text.split(",")]))
        elif key := _dict_key(text):
            into.nodes += self._nested(f".{key[1]}").nodes
        else:
            into.nodes.append(_array_node(text))

    def _filter(self, into: ListNode) -> None:
        self._at += 3
        start = self._at
        quote, closed = "", False
        while True:
            char = self._peek()
            self._at += 1
            if char in ("", "\n"):
                raise JsonPathError("unterminated filter")
            if char in "\"'":
                if not quote:
                    quote = char
                elif self._text[self._at - 2] != "\\" and char == quote:
                    closed = True
            elif char == ")" and bool(quote) == closed:
                break
        text = self._text[start : self._at - 1]
        if self._peek() != "]":
            raise JsonPathError("unclosed array expect ]")
        self._at += 1
        if comparison := _comparison(text):
            into.nodes.append(FilterNode(self._nested(comparison[1]), self._nested(comparison[3]), comparison[2]))
        else:
            into.nodes.append(FilterNode(self._nested(text), ListNode(), "exists"))

    def _quoted(self, into: ListNode, quote: str) -> None:
        start = self._at - 1
        while True:
            char = self._peek()
            self._at += 1
            if char in ("", "\n"):
                raise JsonPathError("unterminated quoted string")
            if char == quote and self._text[self._at - 2] != "\\":
                break
        text = self._text[start : self._at]
        into.nodes.append(LiteralNode(_escape.sub(lambda match: _unescape(match, text), text[1:-1])))


def _unescape(match: re.Match[str], whole: str) -> str:
    if match[1]:
        return SIMPLE_ESCAPES[match[1]]
    for group, base in ((2, 16), (3, 16), (4, 16), (5, 8)):
        if match[group] and (code := int(match[group], base)) <= 0x10FFFF:
            return chr(code)
    raise JsonPathError(f"unquote string {whole} error invalid syntax")


def _array_node(text: str) -> ArrayNode:
    parts = _slice(text)
    if parts is None:
        raise JsonPathError(f"invalid array index {text}")
    numbers: list[Any] = [
        None if part in (None, "", ":") else _index(part.removeprefix(":")) for part in parts.groups()
    ]
    if parts[2] is None:
        start = numbers[0] or 0
        return ArrayNode(numbers[0], start + 1, numbers[2], derived_end=True)
    return ArrayNode(numbers[0], numbers[1], numbers[2])


def _index(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise JsonPathError(f"array index {text} is not a number") from None
