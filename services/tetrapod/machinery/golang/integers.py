"""Integers in texts as Go's strconv parses them, with any number of digits."""

from __future__ import annotations

import re
from typing import Final

from tetrapod.machinery.golang.quoting import go_quote

_DIGITS: Final = 20
"""The digits of the largest 64-bit number. Python refuses to parse numbers with thousands of digits."""
_signed: Final = re.compile("[-+]?[0-9]+", re.ASCII).fullmatch


def parse_int(text: str) -> int:
    """Parse an int64 as Go's ParseInt(text, 10, 64).

    Raises:
        ValueError: the text is not an integer or out of range; with Go's text.
    """
    return _int64("ParseInt", text)


def atoi(text: str) -> int:
    """Parse an int64 as Go's Atoi(text) on 64-bit systems.

    Raises:
        ValueError: the text is not an integer or out of range; with Go's text.
    """
    return _int64("Atoi", text)


def _int64(function: str, text: str) -> int:
    if not _signed(text):
        raise _wrong(function, text, "invalid syntax")
    number = decimal_number(text.lstrip("+-"))
    if text.startswith("-"):
        number = -number
    if not -(1 << 63) <= number < 1 << 63:
        raise _wrong(function, text, "value out of range")
    return number


def parse_uint(text: str, bits: int = 64) -> int:
    """Parse an unsigned integer as Go's ParseUint(text, 10, bits).

    Raises:
        ValueError: the text is not an unsigned integer or out of range; with Go's text.
    """
    if not (text.isascii() and text.isdecimal()):
        raise _wrong("ParseUint", text, "invalid syntax")
    number = decimal_number(text)
    if number >= 1 << bits:
        raise _wrong("ParseUint", text, "value out of range")
    return number


def decimal_number(digits: str) -> int:
    """Return the number that decimal digits mean, or 2^64 if there are too many of them for 64 bits."""
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _DIGITS else 1 << 64


def _wrong(function: str, text: str, why: str) -> ValueError:
    return ValueError(f"strconv.{function}: parsing {go_quote(text)}: {why}")
