"""The parser of selectors in text form: `a=b,c in (d,e),!f`.

Upstream: k8s.io/apimachinery/pkg/labels/selector.go, Parser, including its error texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, TypeAlias

from tetrapod.machinery import field, names
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.labels.selectors import EVERYTHING, Requirement, Selector, requirement

_BINARY: Final = "in, notin, =, ==, !=, gt, lt"
MOST_TERMS: Final = 4096
"""The most requirements, plus values of `in` and `notin`, in a selector. Upstream has no limit except the size of a
request's head.
"""


Token: TypeAlias = tuple[str, str]
"""The kind and the text of a token. Punctuation, `in` and `notin` are their own kind."""
END: Final = "end"
IDENTIFIER: Final = "identifier"
COMMA: Final = ","
NOT: Final = "!"
IN: Final = "in"
NOT_IN: Final = "notin"
OPERATORS: Final = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}
_PUNCTUATION: Final = frozenset({")", ",", "!", "==", "=", ">", "<", "!=", "("})
_KINDS: Final = {text: text for text in (*_PUNCTUATION, IN, NOT_IN)}
_tokens = re.compile("([ \t\r\n]{1,4096})|[^ \t\r\n=!(),><\0]+|==|!=|[=!(),><]").finditer
"""The tokens of a text; group 1 is a piece of white space. No match takes long, so that the interpreter can switch to
another thread between two matches.
"""
_SCANNED: Final = 256
"""Tokens that are scanned before the parser has used them. A selector that is invalid at its beginning is not scanned
to its end.
"""


@bounded(count=256, size=1 << 20, largest=64 << 10, weigh_entry=lambda text, _: 12 * len(text) + 500)
def parse(text: str) -> Selector:
    """Parse a selector in text form; an empty text selects every object.

    Results are cached, because several steps of a request parse the same selector.

    Raises:
        ValueError: the selector is invalid (with upstream's text) or has too many terms.
    """
    if not text:
        return EVERYTHING
    if text.count(",") >= MOST_TERMS:
        raise ValueError(
            f"unable to parse requirement: the selector has more than {MOST_TERMS} requirements and values"
        )
    return Selector(_Parser(scan(text)).parse())


class _Parser:
    """A recursive-descent parser of a selector's tokens.

    `in` and `notin` are identifiers except in the position of an operator.
    """

    def __init__(self, tokens: Iterator[Token]) -> None:
        self._rest = tokens
        self._tokens: list[Token] = []
        self._at = 0

    def _token(self) -> Token:
        if self._at == len(self._tokens):
            self._tokens, self._at = list(islice(self._rest, _SCANNED)), 0
        return self._tokens[self._at]

    def _peek(self) -> Token:
        kind, text = self._token()
        return (IDENTIFIER, text) if kind in (IN, NOT_IN) else (kind, text)

    def _next(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def parse(self) -> list[Requirement]:
        """Return the requirements of the selector, in the order of the text.

        Raises:
            ValueError: the selector is invalid; with upstream's text.
        """
        requirements: list[Requirement] = []
        while True:
            kind, text = self._peek()
            if kind == END:
                return requirements
            if kind not in (IDENTIFIER, NOT):
                raise ValueError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            kind, text = self._next()
            if kind == END:
                return requirements
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
            return Requirement(key, "!")
        if self._peek()[0] in (END, COMMA):
            return Requirement(key, "exists")
        kind, text = self._token()
        self._at += 1
        op = OPERATORS.get(kind)
        if op is None:
            raise ValueError(f"found '{text}', expected: {_BINARY}")
        values = self._values() if op in ("in", "notin") else {self._exact_value()}
        return requirement(key, op, sorted(values), key_is_valid=True)

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
        self._at += 1  # the closing parenthesis, at which `_identifiers` stopped
        return values

    def _identifiers(self) -> set[str]:
        """Read the values of `in` or `notin` up to the closing parenthesis, which is not read.

        As upstream, a missing value between commas is an empty string.

        Raises:
            ValueError: an unexpected token; with upstream's text.
        """
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
        """Read the value after `=`, `==`, `!=`, `>` or `<`; a missing one is an empty string.

        Raises:
            ValueError: an unexpected token; with upstream's text.
        """
        if self._peek()[0] in (END, COMMA):
            return ""
        kind, text = self._next()
        if kind != IDENTIFIER:
            raise ValueError(f"found '{text}', expected: identifier")
        return text


def scan(text: str) -> Iterator[Token]:
    """Yield the tokens of a selector, the last with the kind END.

    A NUL character ends the text, as in upstream's lexer.
    """
    for match in _tokens(text.partition("\0")[0]):
        if match.lastindex is None:
            token = match[0]
            yield _KINDS.get(token, IDENTIFIER), token
    yield END, ""
