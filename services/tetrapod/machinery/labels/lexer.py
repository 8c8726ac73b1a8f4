"""Tokens of label selector texts (upstream: the Lexer in k8s.io/apimachinery/pkg/labels/selector.go)."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Token: TypeAlias = tuple[str, str]
"""(kind, text as written); the kind of punctuation and of `in`, `notin` is the text itself."""

END: Final = "end"
IDENTIFIER: Final = "identifier"
COMMA: Final = ","
NOT: Final = "!"
IN: Final = "in"
NOT_IN: Final = "notin"

OPERATORS: Final = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}
_PUNCTUATION: Final = frozenset({")", ",", "!", "==", "=", ">", "<", "!=", "("})
_word = re.compile("[^ \t\r\n=!(),><\0]+").match
_blank = re.compile("[ \t\r\n]*").match


def scan(text: str) -> list[Token]:
    """All tokens, END last; a NUL character ends the text, as it does in upstream's lexer."""
    tokens: list[Token] = []
    at = 0
    while True:
        at = _blank(text, at).end()  # type: ignore[union-attr]
        if at >= len(text) or text[at] == "\0":
            tokens.append((END, ""))
            return tokens
        if word := _word(text, at):
            found = word[0]
            tokens.append((found if found in (IN, NOT_IN) else IDENTIFIER, found))
            at = word.end()
            continue
        found = text[at : at + 2] if text[at : at + 2] in _PUNCTUATION else text[at]
        tokens.append((found, found))
        at += len(found)
