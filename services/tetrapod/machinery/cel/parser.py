"""The parser: it turns an expression into a tree and expands macros as cel-go does.

A text that does not match the grammar raises `SyntaxProblem` at the first unexpected token; `syntax` then computes
cel-go's messages. Errors beyond the grammar (reserved names, literals out of range, invalid macros) are collected.

Upstream: cel-go parser/parser.go and parser/helper.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.machinery.cel.escaping import RESERVED
from tetrapod.machinery.cel.lexer import BadLiteral, Token, bytes_of, string_of, tokens
from tetrapod.machinery.cel.macros import MACROS, MacroError, bind
from tetrapod.machinery.cel.nodes import Call, Entry, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from tetrapod.machinery.cel.values import Uint
from tetrapod.machinery.golang.integers import decimal_number

MAX_DEPTH: Final = 250  # also the longest chain of operators or selections
MAX_SIZE: Final = 100_000  # code points
_LOWEST, _AND, _RELATION, _SUM, _PRODUCT = range(1, 6)
_OPERATORS: Final = {
    "||": (_LOWEST, "_||_"),
    "&&": (_AND, "_&&_"),
    **{op: (_RELATION, f"_{op}_") for op in ("<", "<=", ">=", ">", "==", "!=")},
    "in": (_RELATION, "@in"),
    **{op: (_SUM, f"_{op}_") for op in "+-"},
    **{op: (_PRODUCT, f"_{op}_") for op in "*/%"},
}
"""The precedence of each binary operator, and its function."""
_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 63) - 1


class SyntaxProblem(ValueError):
    """The error for an unexpected token."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.token = token


class TooDeep(ValueError):
    """The error for an expression that nests, or has a chain of operators or selections, beyond `MAX_DEPTH`."""


class Parser:
    """The parser of one expression.

    `problems` contains the offset (in code points) and message of each error after which parsing continued, such as a
    reserved name or an invalid macro.

    Args:
        text: the expression.
        binds: whether `cel.bind` is a macro.
        core: whether the text has only the core syntax, without macros and optional values.

    Raises:
        LexicalError: a character begins no token.
    """

    def __init__(self, text: str, *, binds: bool = False, core: bool = False) -> None:
        self._tokens = tokens(text)
        self._binds = binds
        self._core = core
        self._index = 0
        self._depth = 0
        self.problems: list[tuple[int, str]] = []

    def parse(self) -> Node:
        """Parse the whole text and return its tree, with macros expanded. The caller must then check `problems`.

        Raises:
            SyntaxProblem: an unexpected token.
            TooDeep: the expression is nested too deeply.
        """
        node = self._expr()
        self._expect("<EOF>")
        return node

    def _peek(self) -> str:
        return self._tokens[self._index].kind

    def _next(self) -> Token:
        token = self._tokens[self._index]
        self._index += 1
        return token

    def _expect(self, kind: str) -> Token:
        token = self._tokens[self._index]
        if token.kind != kind:
            raise SyntaxProblem(token)
        self._index += 1
        return token

    def _accept(self, kind: str) -> bool:
        if self._tokens[self._index].kind != kind:
            return False
        self._index += 1
        return True

    def _optional(self, syntax: str = "?") -> bool:
        """Accept the mark of an optional value, if it is next. `syntax` is the text of its error in the core syntax."""
        accepted = self._accept("?")
        if accepted and self._core:
            self._problem(self._tokens[self._index - 1].at, f"unsupported syntax '{syntax}'")
        return accepted

    def _problem(self, at: int, message: str) -> Node:
        self.problems.append((at, message))
        return Literal(at, None)

    def _expr(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooDeep
        node = self._binary(_LOWEST)
        if self._peek() == "?":
            at = self._next().at
            true = self._binary(_LOWEST)
            self._expect(":")
            node = Call(at, "_?_:_", [node, true, self._expr()])
        self._depth -= 1
        return node

    def _binary(self, lowest: int) -> Node:
        """Parse an operand and the binary operators after it whose precedence is at least `lowest`.

        Raises:
            SyntaxProblem: an unexpected token.
            TooDeep: the operators form too long a chain.
        """
        node = self._unary()
        length = 0
        while (operator := _OPERATORS.get(self._peek())) is not None and operator[0] >= lowest:
            binding, function = operator
            if binding <= _AND:
                node = self._logic(node, binding, function)
                continue
            at = self._next().at
            node = Call(at, function, [node, self._binary(binding + 1)])
            length += 1
            if length > MAX_DEPTH:
                raise TooDeep
        return node

    def _logic(self, first: Node, binding: int, function: str) -> Node:
        """Parse the rest of a chain of `&&` or `||` after its first operand, and return a balanced tree.

        Args:
            first: the first operand.
            binding: the precedence of the operator.
            function: the function of the operator.
        """
        terms, places, op = [first], [], self._peek()
        while self._peek() == op:
            places.append(self._next().at)
            terms.append(self._binary(binding + 1))
        return _balanced(function, terms, places, 0, len(places) - 1)

    def _unary(self) -> Node:
        kind = self._peek()
        if kind not in ("!", "-") or (kind == "-" and self._tokens[self._index + 1].kind in ("NUM_INT", "NUM_FLOAT")):
            return self._member()
        at = self._next().at
        count = 1
        while self._peek() == kind and not (
            kind == "-" and self._tokens[self._index + 1].kind in ("NUM_INT", "NUM_FLOAT")
        ):
            self._next()
            count += 1
        node = self._member()
        return Call(at, f"{kind}_", [node]) if count % 2 else node

    def _member(self) -> Node:
        node = self._primary()
        length = 0
        while True:
            kind = self._peek()
            length += 1
            if length > MAX_DEPTH:
                raise TooDeep
            if kind == ".":
                node = self._after_dot(node, self._next().at)
            elif kind == "[":
                at = self._next().at
                function = "_[?_]" if self._optional("[?") else "_[_]"
                node = Call(at, function, [node, self._expr()])
                self._expect("]")
            else:
                return node

    def _after_dot(self, operand: Node, at: int) -> Node:
        optional = self._optional(".?")
        token = self._next()
        if token.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            raise SyntaxProblem(token)
        if token.kind == "IDENTIFIER" and not optional and self._peek() == "(":
            place = self._next().at
            return self._call(place, token.text, self._arguments(), operand)
        name = token.text[1:-1] if token.kind == "ESC_IDENTIFIER" else token.text
        if optional:
            return Call(at, "_?._", [operand, Literal(token.at, name)])
        return Select(at, operand, name)

    def _arguments(self) -> list[Node]:
        args: list[Node] = []
        if self._accept(")"):
            return args
        args.append(self._expr())
        while self._accept(","):
            args.append(self._expr())
        self._expect(")")
        return args

    def _call(self, at: int, name: str, args: list[Node], target: Node | None) -> Node:
        macro = None if self._core else MACROS.get((name, len(args), target is not None))
        if macro is None:
            return self._bind(at, args, target) if self._binds and name == "bind" else Call(at, name, args, target)
        try:
            return macro(at, target, args)
        except MacroError as error:
            return self._problem(error.at, error.message)

    def _bind(self, at: int, args: list[Node], target: Node | None) -> Node:
        try:
            expanded = bind(at, target, args) if len(args) == 3 else None
        except MacroError as error:
            return self._problem(error.at, error.message)
        return Call(at, "bind", args, target) if expanded is None else expanded

    def _primary(self) -> Node:
        token = self._next()
        match token.kind:
            case "IDENTIFIER":
                return self._named(token, "", token.at)
            case ".":
                return self._named(self._expect("IDENTIFIER"), ".", token.at)
            case "(":
                node = self._expr()
                self._expect(")")
                return node
            case "[":
                return self._list(token.at)
            case "{":
                return self._map(token.at)
        return self._literal(token)

    def _named(self, token: Token, dot: str, start: int) -> Node:
        """Parse an object, a call or an identifier, after its first name.

        Args:
            token: the name.
            dot: "." if a dot precedes the name, else "".
            start: the offset of the dot or the name.
        """
        after_name, names = self._index, [token.text]
        while self._peek() == "." and self._tokens[self._index + 1].kind == "IDENTIFIER":
            self._index += 1
            names.append(self._next().text)
        if self._peek() == "{":
            at = self._next().at
            return StructNode(at, dot + ".".join(names), self._fields())
        self._index = after_name
        if token.text in RESERVED:
            if self._accept("("):
                self._arguments()
            return self._problem(start, f"reserved identifier: {token.text}")
        if self._peek() == "(":
            place = self._next().at
            return self._call(place, dot + token.text, self._arguments(), None)
        return Ident(token.at, dot + token.text)

    def _list(self, at: int) -> Node:
        elements: list[Node] = []
        optional = set()
        while self._peek() not in ("]", ","):
            if self._optional():
                optional.add(len(elements))
            elements.append(self._expr())
            if self._peek() != "]" and not (self._accept(",") and self._peek() != ","):
                raise SyntaxProblem(self._tokens[self._index])
        if not elements:
            self._accept(",")
        self._expect("]")
        return ListNode(at, elements, frozenset(optional))

    def _map(self, at: int) -> Node:
        return MapNode(at, self._entries(self._map_entry))

    def _fields(self) -> list[Entry]:
        return self._entries(self._field)

    def _entries(self, entry: Callable[[], Entry]) -> list[Entry]:
        entries: list[Entry] = []
        while self._peek() not in ("}", ","):
            entries.append(entry())
            if self._peek() != "}" and not (self._accept(",") and self._peek() != ","):
                raise SyntaxProblem(self._tokens[self._index])
        if not entries:
            self._accept(",")
        self._expect("}")
        return entries

    def _map_entry(self) -> Entry:
        optional = self._optional()
        key = self._expr()
        at = self._expect(":").at
        return Entry(at, key, "", self._expr(), optional)

    def _field(self) -> Entry:
        optional = self._optional()
        token = self._next()
        if token.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            raise SyntaxProblem(token)
        at = self._expect(":").at
        return Entry(at, None, token.text.strip("`"), self._expr(), optional)

    def _literal(self, token: Token) -> Node:
        at, sign = token.at, ""
        if token.kind == "-":
            sign, token = "-", self._next()
            if token.kind not in ("NUM_INT", "NUM_FLOAT"):
                raise SyntaxProblem(token)
        text = token.text
        match token.kind:
            case "NUM_INT":
                number = -_integer(text) if sign else _integer(text)
                return (
                    Literal(at, number) if _INT_MIN <= number <= _INT_MAX else self._problem(at, "invalid int literal")
                )
            case "NUM_UINT":
                number = _integer(text[:-1])
                return Literal(at, Uint(number)) if number < 1 << 64 else self._problem(at, "invalid uint literal")
            case "NUM_FLOAT":
                real = float(sign + text)
                return (
                    self._problem(at, "invalid double literal")
                    if real in (float("inf"), float("-inf"))
                    else Literal(at, real)
                )
            case "STRING" | "BYTES":
                try:
                    return Literal(at, string_of(text) if token.kind == "STRING" else bytes_of(text[1:]))
                except BadLiteral as error:
                    return self._problem(at, str(error))
            case "true" | "false":
                return Literal(at, token.kind == "true")
            case "null":
                return Literal(at, None)
        raise SyntaxProblem(token)


def _integer(text: str) -> int:
    """Return the number of an int literal, or 2^64 if it has too many decimal digits."""
    return int(text, 16) if text.startswith("0x") else decimal_number(text)


def _balanced(function: str, terms: list[Node], places: list[int], low: int, high: int) -> Node:
    """Return a balanced tree for a part of a chain of one logical operator.

    Args:
        function: the function of the operator.
        terms: all operands of the chain.
        places: the offset of each operator of the chain in the expression.
        low: the index of the first operator of the part.
        high: the index of the last operator of the part.

    Upstream: logicManager.
    """
    mid = (low + high + 1) // 2
    left = terms[mid] if mid == low else _balanced(function, terms, places, low, mid - 1)
    right = terms[mid + 1] if mid == high else _balanced(function, terms, places, mid + 1, high)
    return Call(places[mid], function, [left, right])
