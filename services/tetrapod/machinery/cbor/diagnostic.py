"""CBOR in diagnostic notation, for error texts that quote a body.

Upstream: github.com/fxamacker/cbor, diagnose.go; RFC 8949, section 8
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Final

import orjson

from tetrapod.machinery.cbor.decoding import ARRAY, BREAK, BYTES, FLOATS, MAP, NEGATIVE, TAG, TEXT, UNSIGNED, read_head

_CONSTANTS: Final = {20: "false", 21: "true", 22: "null", 23: "undefined"}


def diagnose(data: bytes) -> str:
    """Return the one data item in `data`, which must be well-formed, in diagnostic notation."""
    return _item(data, 0)[0]


def _item(data: bytes, at: int) -> tuple[str, int]:
    """Return the diagnostic notation of the item that begins at `at` in well-formed CBOR, and the position after it."""
    start = at
    major, info, argument, at = read_head(data, at)
    if argument is None:
        return _indefinite(data, major, at)
    if major in (UNSIGNED, NEGATIVE):
        return str(argument if major == UNSIGNED else -1 - argument), at
    if major in (BYTES, TEXT):
        return _string(major, data[at : at + argument]), at + argument
    if major in (ARRAY, MAP):
        parts = []
        for _ in range(argument):
            part, at = _member(data, major, at)
            parts.append(part)
        return _enclosed(major, ", ".join(parts)), at
    if major == TAG:
        content, at = _item(data, at)
        return f"{argument}({content})", at
    if info in FLOATS:
        return _float(struct.unpack_from(FLOATS[info], data, start + 1)[0]), at
    return _CONSTANTS.get(argument, f"simple({argument})"), at


def _float(value: float) -> str:
    """Return a finite number with a decimal point, below 1e-6 and from 1e21 on with an exponent."""
    text = repr(value)
    if value and not 1e-6 <= abs(value) < 1e21:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent.replace('-0', '-')}"
    text = format(Decimal(text), "f")
    return text if "." in text else f"{text}.0"


def _indefinite(data: bytes, major: int, at: int) -> tuple[str, int]:
    parts = []
    while data[at] != BREAK:
        part, at = _member(data, major, at)
        parts.append(part)
    return _enclosed(major, f"_ {', '.join(parts)}"), at + 1


def _member(data: bytes, major: int, at: int) -> tuple[str, int]:
    first, at = _item(data, at)
    if major != MAP:
        return first, at
    value, at = _item(data, at)
    return f"{first}: {value}", at


def _enclosed(major: int, content: str) -> str:
    brackets = {MAP: "{}", ARRAY: "[]"}.get(major, "()")
    return brackets[0] + content + brackets[1]


def _string(major: int, content: bytes) -> str:
    try:
        quoted = orjson.dumps(content.decode()).decode()
    except UnicodeDecodeError:
        return f"h'{content.hex()}'"
    return quoted if major == TEXT else "'" + quoted[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"
