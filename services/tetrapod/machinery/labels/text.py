"""The text form of a selector: `a=b,c in (d,e),!f` (upstream: the Parser in k8s.io/apimachinery/pkg/labels/selector.go, texts included)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tetrapod.machinery import field, names
from tetrapod.machinery.labels.lexer import COMMA, END, IDENTIFIER, IN, NOT, NOT_IN, OPERATORS, Token, scan
from tetrapod.machinery.labels.selectors import EVERYTHING, Requirement, Selector, requirement

_BINARY: Final = "in, notin, =, ==, !=, gt, lt"


@lru_cache(maxsize=2)
def parse(text: str) -> Selector:
    """Parse the text form of a selector; the last ones are kept, for those on one request's way who ask again (a text may be a megabyte).

    Raises:
        ValueError: with upstream's text.
    """
    if not text:
        return EVERYTHING
    return Selector(_Parser(scan(text)).parse())


class _Parser:
    """Recursive descent over the tokens. `in` and `notin` are words like others except as operators."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> Token:
        kind, text = self._tokens[self._at]
        return (IDENTIFIER, text) if kind in (IN, NOT_IN) else (kind, text)

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            kind, text = self._peek()
            if kind == END:
                return found
            if kind not in (IDENTIFIER, NOT):
                raise ValueError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            kind, text = self._next()
            if kind == END:
                return found
            if kind != COMMA:
                raise ValueError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in (IDENTIFIER, NOT):
                raise ValueError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        kind, key = self._next()
        negated = kind == NOT
        if negated:
            kind, key = self._next()
        if kind != IDENTIFIER:
            raise ValueError(f"found '{key}', expected: identifier")
        if texts := names.is_qualified_name(key):
            raise ValueError(str(field.invalid("<nil>", key, "; ".join(texts))))
        if negated:
            return requirement(key, "!", [])
        if self._peek()[0] in (END, COMMA):
            return requirement(key, "exists", [])
        kind, text = self._tokens[self._at]
        self._at += 1
        op = OPERATORS.get(kind)
        if op is None:
            raise ValueError(f"found '{text}', expected: {_BINARY}")
        values = self._values() if op in ("in", "notin") else {self._exact_value()}
        return requirement(key, op, sorted(values))

    def _values(self) -> set[str]:
        kind, text = self._next()
        if kind != "(":
            raise ValueError(f"found '{text}' expected: '('")
        kind, text = self._peek()
        if kind == ")":
            self._at += 1
            return {""}
        if kind not in (IDENTIFIER, COMMA):
            raise ValueError(f"found '{text}', expected: ',', ')' or identifier")
        values = self._identifiers()
        self._at += 1  # the closing parenthesis at which _identifiers stopped
        return values

    def _identifiers(self) -> set[str]:
        values: set[str] = set()
        while True:
            kind, text = self._next()
            if kind == IDENTIFIER:
                values.add(text)
                kind, text = self._peek()
                if kind == ")":
                    return values
                if kind != COMMA:
                    raise ValueError(f"found '{text}', expected: ',' or ')'")
            elif kind == COMMA:
                if not values:
                    values.add("")
                following = self._peek()[0]
                if following == ")":
                    values.add("")
                    return values
                if following == COMMA:
                    values.add("")
            else:
                raise ValueError(f"found '{text}', expected: ',', or identifier")

    def _exact_value(self) -> str:
        if self._peek()[0] in (END, COMMA):
            return ""
        kind, text = self._next()
        if kind != IDENTIFIER:
            raise ValueError(f"found '{text}', expected: identifier")
        return text
