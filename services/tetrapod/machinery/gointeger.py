"""Integers in texts as Go's strconv reads them, however many digits there are."""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.field import go_quote

_DIGITS: Final = 20
"""Of the largest number in 64 bits; Python refuses to read some thousands."""
_signed: Final = re.compile("[-+]?[0-9]+", re.ASCII).fullmatch


def parse_int(text: str) -> int:
    """ParseInt(text, 10, 64). Raises ValueError with its text."""
    if not _signed(text):
        raise _wrong("ParseInt", text, "invalid syntax")
    number = _number(text.lstrip("+-"))
    if text.startswith("-"):
        number = -number
    if not -(1 << 63) <= number < 1 << 63:
        raise _wrong("ParseInt", text, "value out of range")
    return number


def parse_uint(text: str, bits: int = 64) -> int:
    """ParseUint(text, 10, bits). Raises ValueError with its text."""
    if not (text.isascii() and text.isdecimal()):
        raise _wrong("ParseUint", text, "invalid syntax")
    number = _number(text)
    if number >= 1 << bits:
        raise _wrong("ParseUint", text, "value out of range")
    return number


def _number(digits: str) -> int:
    """One of too many digits is another that is too large."""
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _DIGITS else 1 << 64


def _wrong(function: str, text: str, why: str) -> ValueError:
    return ValueError(f"strconv.{function}: parsing {go_quote(text)}: {why}")
