"""The lexer of CEL, and the values of string and bytes literals.

Upstream: cel-go parser/gen/CEL.g4 and parser/unescape.go.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tetrapod.machinery.golang.quoting import SIMPLE_ESCAPES

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = (
    rf'[rR](?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"[^"\n\r]*"|\'[^\'\n\r]*\')'
    rf'|"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"|\'(?:{_ESCAPE}|[^\\\'\n\r])*\''
)
_TOKEN: Final = re.compile(
    r"(?P<SPACE>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<BYTES>[bB](?:{_STRING}))"
    rf"|(?P<STRING>{_STRING})"
    r"|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])"
    r"|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<OP>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])"
)
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
_SIMPLE: Final = {**SIMPLE_ESCAPES, "`": "`", "?": "?"}


class Token(NamedTuple):
    """A token of an expression.

    `kind` is the text of an operator or keyword, the rule's name for other tokens, and "<EOF>" at the end of the text.
    `at` is the offset in code points.
    """

    kind: str
    text: str
    at: int


class LexicalError(ValueError):
    """The error for a character that begins no token; its argument is the offset."""


class BadLiteral(ValueError):
    """The error for a literal with an invalid escape sequence. The text is upstream's."""


def tokens(text: str) -> list[Token]:
    """Return all tokens of an expression, without white space and comments, followed by an "<EOF>" token.

    Raises:
        LexicalError: a character begins no token.
    """
    result: list[Token] = []
    at, end = 0, len(text)
    match = _TOKEN.match
    while at < end:
        token_match = match(text, at)
        if token_match is None:
            raise LexicalError(at)
        kind = token_match.lastgroup or ""
        if kind != "SPACE":
            piece = token_match[0]
            result.append(Token(piece if kind == "OP" or piece in _KEYWORDS else kind, piece, at))
        at = token_match.end()
    result.append(Token("<EOF>", "<EOF>", end))
    return result


def string_of(text: str) -> str:
    """Return the value of a string literal, which is given with its quotes and its prefix `r`, if it has one.

    Raises:
        BadLiteral: an escape sequence is not a Unicode code point.
    """
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body
    pieces = []
    for plain, escape in re.findall(rf"([^\\]+)|({_ESCAPE})", body):
        pieces.append(plain or _char(escape))
    return "".join(pieces)


def bytes_of(text: str) -> bytes:
    """Return the value of a bytes literal, which is given with its quotes but without its prefix `b`.

    Raises:
        BadLiteral: the literal has a Unicode escape sequence.
    """
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    pieces = []
    for plain, escape in re.findall(rf"([^\\]+)|({_ESCAPE})", body):
        if plain:
            pieces.append(plain.encode("utf-8", "surrogatepass"))
        elif escape[1] in "uU":
            raise BadLiteral("unable to unescape string")
        else:
            pieces.append(bytes([_number(escape) & 255]) if escape[1] in "xX0123" else _SIMPLE[escape[1]].encode())
    return b"".join(pieces)


def _body(text: str) -> tuple[str, bool]:
    r"""Return the text of a literal between its quotes, and whether the literal is raw.

    Line ends are normalized to `\n`.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes], raw


def _number(escape: str) -> int:
    return int(escape[2:], 16) if escape[1] in "xXuU" else int(escape[1:], 8)


def _char(escape: str) -> str:
    if escape[1] in _SIMPLE:
        return _SIMPLE[escape[1]]
    number = _number(escape)
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise BadLiteral("invalid unicode code point")
    return chr(number)
