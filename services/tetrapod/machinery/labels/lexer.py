"""Tokens of label selectors in text form. Upstream: k8s.io/apimachinery/pkg/labels/selector.go, Lexer."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

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
_tokens = re.compile("[^ \t\r\n=!(),><\0]+|==|!=|[=!(),><]").findall


def scan(text: str) -> list[Token]:
    """Return all tokens, END last. A NUL character ends the text, as in upstream's lexer."""
    kind_of = _KINDS.get
    tokens = [(kind_of(token, IDENTIFIER), token) for token in _tokens(text.partition("\0")[0])]
    tokens.append((END, ""))
    return tokens
