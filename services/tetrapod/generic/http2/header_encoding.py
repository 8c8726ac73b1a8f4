"""Encoding of HTTP/2 header blocks (RFC 7541) without a dynamic table, so that parts of a block can be cached."""

from __future__ import annotations

from typing import Final

from hpack.table import HeaderTable

STATIC_TABLE: Final = tuple(HeaderTable.STATIC_TABLE)
"""The names and values of the static table (RFC 7541, appendix A). The first has index 1."""
STATIC_NAMES: Final = {name: index for index, (name, _) in reversed(list(enumerate(STATIC_TABLE, 1)))}
"""The first index of each name in the static table."""


def integer(value: int, bits: int, first: int) -> bytes:
    """Encode an integer with a prefix of `bits` bits (RFC 7541, 5.1). `first` has the bits before the prefix."""
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
    """Encode a field that is in the static table."""
    return integer(index, 7, 0x80)


def name_prefix(name: bytes) -> bytes:
    """Encode the name of a literal field without indexing. The value, as a `string`, follows."""
    index = STATIC_NAMES.get(name)
    return b"\0" + string(name) if index is None else integer(index, 4, 0)


def literal(name: bytes, value: bytes) -> bytes:
    """Encode a field as a literal without indexing."""
    return name_prefix(name) + string(value)
