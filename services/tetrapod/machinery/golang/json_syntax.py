"""Error texts for invalid JSON, as the scanner of Go's encoding/json gives them.

Only rejected bodies are scanned: `json.decode` parses with orjson and calls `explain` for the text.

Upstream: Go's encoding/json/scanner.go.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.golang.quoting import go_quote

_END: Final = "unexpected end of JSON input"
_BLANK = re.compile(rb"[ \t\r\n]*")
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_DIGITS: Final = frozenset(b"0123456789")


class _Problem(Exception):
    """The exception that ends the scan at the first syntax error; its text is the message."""


def explain(data: bytes, max_depth: int = 10_000) -> str:
    """Return the message of the first syntax error in a JSON text, or "" if it is well-formed.

    Args:
        data: the JSON text.
        max_depth: the most levels of objects and lists; more are an error.
    """
    try:
        _Scanner(data, max_depth).scan()
    except _Problem as problem:
        return str(problem)
    return ""


class _Scanner:
    """A scanner of one JSON text, which stops at the first syntax error. Its methods raise `_Problem`.

    Args:
        data: the JSON text.
        max_depth: the most levels of objects and arrays.
    """

    def __init__(self, data: bytes, max_depth: int) -> None:
        self._data = data
        self._max_depth = max_depth
        self._at = 0

    def _fail(self, context: str, *, within_token: bool = False) -> _Problem:
        """Return the error about the current byte, or about the end of the input.

        Args:
            context: the end of the message, which says where the byte is or what was expected there.
            within_token: whether the position is within a literal, a number or an escape. As in Go, the error about the
                end of the input is then that of a space.
        """
        at_end = self._at >= len(self._data)
        if at_end and not within_token:
            return _Problem(_END)
        char = " " if at_end else chr(self._data[self._at])
        shown = {"'": r"\'", '"': '"'}.get(char) or go_quote(char)[1:-1]
        return _Problem(f"invalid character '{shown}' {context}")

    def _blank(self) -> int:
        """Skip white space, and return the next byte without reading it, or -1 at the end."""
        self._at = _BLANK.match(self._data, self._at).end()  # type: ignore[union-attr]
        return self._data[self._at] if self._at < len(self._data) else -1

    def _peek(self) -> int:
        return self._data[self._at] if self._at < len(self._data) else -1

    def scan(self) -> None:
        closers: list[int] = []  # the closing bracket of each open array or object
        while True:
            opened = self._value_or_open(closers)
            if opened:
                continue
            if not self._after_value(closers):
                return

    def _value_or_open(self, closers: list[int]) -> bool:
        """Read a scalar or an empty array or object, or the start of a non-empty one, which is added to `closers`.

        Args:
            closers: the bytes that close the open arrays and objects, from the outermost; modified in place.

        Returns:
            Whether a non-empty array or object was opened, so that a value follows.

        Raises:
            _Problem: a syntax error.
        """
        char = self._blank()
        if char in (ord("["), ord("{")):
            if len(closers) >= self._max_depth:
                raise self._fail("exceeded max depth")
            self._at += 1
            closer = char + 2  # in ASCII, ] comes two after [, and } two after {
            if self._blank() == closer:
                self._at += 1
                return False
            closers.append(closer)
            if char == ord("{"):
                self._key()
            return True
        self._scalar(char)
        return False

    def _after_value(self, closers: list[int]) -> bool:
        """Read the ends of arrays and objects after a value, and the comma (and key) before the next value.

        Args:
            closers: the bytes that close the open arrays and objects, from the outermost. Those that are read are
                removed.

        Returns:
            Whether another value follows; False at the end of the text.

        Raises:
            _Problem: a syntax error.
        """
        while True:
            char = self._blank()
            if not closers:
                if char != -1:
                    raise self._fail("after top-level value")
                return False
            in_object = closers[-1] == ord("}")
            if char == ord(","):
                self._at += 1
                if in_object:
                    self._blank()
                    self._key()
                return True
            if char != closers[-1]:
                raise self._fail("after object key:value pair" if in_object else "after array element")
            closers.pop()
            self._at += 1

    def _key(self) -> None:
        if self._peek() != ord('"'):
            raise self._fail("looking for beginning of object key string")
        self._string()
        if self._blank() != ord(":"):
            raise self._fail("after object key")
        self._at += 1

    def _scalar(self, char: int) -> None:
        if char == ord('"'):
            self._string()
        elif char in _DIGITS or char == ord("-"):
            self._number(char)
        elif char in _LITERALS:
            literal = _LITERALS[char]
            for expected in literal:
                if self._peek() != expected:
                    text = f"in literal {literal.decode()} (expecting '{chr(expected)}')"
                    raise self._fail(text, within_token=True)
                self._at += 1
        else:
            raise self._fail("looking for beginning of value")

    def _string(self) -> None:
        self._at += 1
        while (char := self._peek()) != ord('"'):
            if char < 0x20:
                raise self._fail("in string literal")
            self._at += 1
            if char == ord("\\"):
                self._escape()
        self._at += 1

    def _escape(self) -> None:
        char = self._peek()
        if char not in b'"\\/bfnrtu' if char >= 0 else True:
            raise self._fail("in string escape code", within_token=True)
        self._at += 1
        if char == ord("u"):
            for _ in range(4):
                if self._peek() not in _HEX:
                    raise self._fail(r"in \u hexadecimal character escape", within_token=True)
                self._at += 1

    def _number(self, char: int) -> None:
        if char == ord("-"):
            self._at += 1
            if self._peek() not in _DIGITS:
                raise self._fail("in numeric literal", within_token=True)
        if self._peek() == ord("0"):
            self._at += 1
        else:
            self._digits()
        if self._peek() == ord("."):
            self._at += 1
            self._digits("after decimal point in numeric literal")
        if self._peek() in (ord("e"), ord("E")):
            self._at += 1
            if self._peek() in (ord("+"), ord("-")):
                self._at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, context: str = "") -> None:
        if context and self._peek() not in _DIGITS:
            raise self._fail(context, within_token=True)
        while self._peek() in _DIGITS:
            self._at += 1
