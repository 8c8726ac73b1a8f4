"""JSON of orjson's with its floats written as Go writes them: no exponent is shown from 1e-6 to 1e21.

Upstream: floatEncoder of Go's encoding/json.
"""

from __future__ import annotations

import re
from decimal import Decimal

_ends = re.compile(rb"(?:e\+(?:1[6-9]|20)|e-6)(?:[,\]}]|$)").match
_text_or_whole = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9]+\.0(?![0-9e])')
_text_or_float = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9.]+e(?:\+1[6-9]|\+20|-6)(?![0-9])')


def without_exponents(encoded: bytes) -> bytes:
    """A document of orjson's whose floats between 1e-6 and 1e21 are written as Go writes them."""
    return _text_or_float.sub(_in_go, encoded) if _has_exponent(encoded) else encoded


def _has_exponent(encoded: bytes) -> bool:
    """Perhaps only in a text. Nearly every document has none, and is told so without an expression that looks at all of it."""
    return (b"+" in encoded and _has(encoded, b"e+")) or _has(encoded, b"e-6")


def _has(encoded: bytes, sign: bytes) -> bool:
    at = encoded.find(sign)
    while at >= 0:
        if encoded[at - 1 : at].isdigit() and _ends(encoded, at) is not None:
            return True
        at = encoded.find(sign, at + 1)
    return False


def as_go_writes(encoded: bytes) -> bytes:
    """The same, with whole floats among them: those of a value that has not been stored yet."""
    return _text_or_float.sub(_in_go, _text_or_whole.sub(_shortened, encoded)) if b"." in encoded or b"e" in encoded else encoded


def _shortened(match: re.Match[bytes]) -> bytes:
    found = match[0]
    return found if found.startswith(b'"') else found[:-2]


def _in_go(match: re.Match[bytes]) -> bytes:
    found = match[0]
    return found if found.startswith(b'"') else format(Decimal(found.decode()), "f").encode()
