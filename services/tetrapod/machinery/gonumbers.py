"""JSON of orjson's with its floats written as Go writes them: no exponent is shown from 1e-6 to 1e21.

Upstream: floatEncoder of Go's encoding/json.
"""

from __future__ import annotations

import re
from decimal import Decimal

_large = re.compile(rb"[0-9]e\+(?:1[6-9]|20)(?:[,\]}]|$)").search
_small = re.compile(rb"[0-9]e-6(?:[,\]}]|$)").search
_text_or_whole = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9]+\.0(?![0-9e])')
_text_or_float = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9.]+e(?:\+1[6-9]|\+20|-6)(?![0-9])')


def without_exponents(encoded: bytes) -> bytes:
    """A document of orjson's whose floats between 1e-6 and 1e21 are written as Go writes them."""
    return _text_or_float.sub(_in_go, encoded) if _has_exponent(encoded) else encoded


def _has_exponent(encoded: bytes) -> bool:
    """Perhaps only in a text. Nearly every document has none, which is told by what is found fastest: one byte, then two, then a pattern."""
    if b"+" in encoded and b"e+" in encoded and _large(encoded) is not None:
        return True
    return b"e-6" in encoded and _small(encoded) is not None


def as_go_writes(encoded: bytes) -> bytes:
    """The same, with whole floats among them: those of a value that has not been stored yet."""
    return _text_or_float.sub(_in_go, _text_or_whole.sub(_shortened, encoded)) if b"." in encoded or b"e" in encoded else encoded


def _shortened(match: re.Match[bytes]) -> bytes:
    found = match[0]
    return found if found.startswith(b'"') else found[:-2]


def _in_go(match: re.Match[bytes]) -> bytes:
    found = match[0]
    return found if found.startswith(b'"') else format(Decimal(found.decode()), "f").encode()
