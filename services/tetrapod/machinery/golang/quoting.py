"""Quoting of strings as Go's strconv does it, for error messages that contain names and values."""

from __future__ import annotations

from typing import Final

_SHORT_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
SIMPLE_ESCAPES: Final = {escape[1]: char for char, escape in _SHORT_ESCAPES.items()} | {char: char for char in "\\'\""}
"""The characters that string literals of Go, CEL and JSONPath write as a backslash and a character, by the latter."""


def go_quote(text: str) -> str:
    """Quote a string as Go's strconv.Quote does: printable characters are kept, all others are escaped.

    A byte of invalid UTF-8, which `surrogateescape` decoded to a lone surrogate, is shown in hexadecimal.
    """
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    out = []
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif char.isprintable():
            out.append(char)
        elif char in _SHORT_ESCAPES:
            out.append(_SHORT_ESCAPES[char])
        elif (code := ord(char)) < 0x80:
            out.append(f"\\x{code:02x}")
        elif 0xDC80 <= code <= 0xDCFF:  # a byte of invalid UTF-8, decoded with surrogateescape
            out.append(f"\\x{code - 0xDC00:02x}")
        elif code < 0x10000:
            out.append(f"\\u{code:04x}")
        else:
            out.append(f"\\U{code:08x}")
    return '"' + "".join(out) + '"'
