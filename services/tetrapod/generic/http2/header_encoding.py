"""Encoding of HTTP/2 header blocks (RFC 7541) without a dynamic table, so that parts of a block can be cached."""

from __future__ import annotations

from typing import Final

from hpack.table import HeaderTable

STATIC_TABLE: Final = tuple(HeaderTable.STATIC_TABLE)
"""The names and values of the static table (RFC 7541, appendix A). The first has index 1."""
STATIC_NAMES: Final = {name: index for index, (name, _) in reversed(list(enumerate(STATIC_TABLE, 1)))}
"""The first index of each name in the static table."""


def integer(value: int, bits: int, first: int) -> bytes:
    """Encode an integer in HPACK's notation (RFC 7541, 5.1).

    Args:
        value: the integer.
        bits: the number of low bits of the first byte that belong to the integer (its prefix).
        first: the other bits of the first byte.
    """
    limit = (1 << bits) - 1
    if value < limit:
        return bytes((first | value,))
    encoded = [first | limit]
    value -= limit
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes((*encoded, value))


def string(text: bytes) -> bytes:
    """Encode a string without Huffman coding."""
    return integer(len(text), 7, 0) + text


def indexed(index: int) -> bytes:
    """Encode a header field as its index in the static table."""
    return integer(index, 7, 0x80)


def name_prefix(name: bytes) -> bytes:
    """Encode the beginning of a literal header field without indexing: its name. The value, as a `string`, follows."""
    index = STATIC_NAMES.get(name)
    return b"\0" + string(name) if index is None else integer(index, 4, 0)


def literal(name: bytes, value: bytes) -> bytes:
    """Encode a field as a literal without indexing."""
    return name_prefix(name) + string(value)
