"""`HeaderDecoder`: decodes the header blocks of one connection (RFC 7541), with bounds on work and memory.

hpack's decoder copies the rest of the block for each literal, so that a block of 512 kB with many literals takes
seconds. This one takes time in proportion to the block and to the decoded list. Huffman coding and the static table are
hpack's.
"""

from __future__ import annotations

from typing import Final

from hpack.exceptions import HPACKDecodingError
from hpack.huffman_table import decode_huffman

from tetrapod.generic.http2.frames import COMPRESSION_ERROR, ProtocolError
from tetrapod.generic.http2.header_encoding import STATIC_TABLE

Headers = list[tuple[bytes, bytes]]

TABLE_SIZE: Final = 4096
"""The size of the dynamic table, which is HTTP/2's default (RFC 9113, 6.5.2)."""
OVERHEAD: Final = 32
"""Bytes that an entry counts beyond its name and value (RFC 7541, 4.1)."""
_STATIC: Final = len(STATIC_TABLE)
_KNOWN: Final = 16
"""Blocks, and strings in Huffman coding, whose meaning is kept for each connection."""
_LONGEST_KNOWN: Final = 2048
"""Bytes of such a block or string. Some clients do not put bearer tokens into the dynamic table, and decoding one of
1,000 bytes takes 130 µs.
"""
_SHORT: Final = 16
"""Bytes of a string below which decoding takes no longer than a look-up is worth."""
_MOST_BYTES_OF_AN_INTEGER: Final = 5


class OversizedHeaders(Exception):
    """A header list that is longer than the limit. The connection cannot decode further blocks."""


class HeaderDecoder:
    """The HPACK decoder of the header blocks that one connection receives.

    Args:
        limit: the greatest size of a header list, where each header counts 32 bytes more than its name and value.
        table_size: the greatest size of the dynamic table, as announced to the peer. The default is HTTP/2's.
    """

    def __init__(self, limit: int, table_size: int = TABLE_SIZE) -> None:
        self._limit = limit
        self._largest_table = table_size
        self._table: Headers = []  # the newest entry is the last
        self._table_size = 0
        self._table_limit = table_size
        self._known: dict[bytes, Headers] = {}  # blocks that mean the same until the dynamic table changes
        self._strings: dict[bytes, bytes] = {}

    def decode(self, block: bytes) -> Headers:
        """Return the headers of a complete block. The caller must not change the list.

        Raises:
            ProtocolError: the block is malformed.
            OversizedHeaders: the list exceeds the limit.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        try:
            headers, changed = self._decode(block)
        except (IndexError, HPACKDecodingError) as error:
            raise ProtocolError(COMPRESSION_ERROR, f"a header block cannot be read: {error}") from None
        if changed:
            self._known.clear()
        elif len(block) <= _LONGEST_KNOWN:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[block] = headers
        return headers

    def _decode(self, block: bytes) -> tuple[Headers, bool]:
        headers: Headers = []
        changed = False
        left = self._limit
        at, end = 0, len(block)
        while at < end:
            first = block[at]
            if first & 0x80:
                index, at = _integer(block, at, 0x7F)
                header = self._entry(index)
            elif first & 0xE0 == 0x20:
                if headers:
                    raise ProtocolError(COMPRESSION_ERROR, "a table size update follows a header")
                limit, at = _integer(block, at, 0x1F)
                self._resize(limit)
                changed = True
                continue
            else:
                index, at = _integer(block, at, 0x3F if first & 0x40 else 0x0F)
                if index:
                    name = self._entry(index)[0]
                else:
                    name, at = self._string(block, at)
                value, at = self._string(block, at)
                header = (name, value)
                if first & 0x40:
                    self._add(header)
                    changed = True
            left -= OVERHEAD + len(header[0]) + len(header[1])
            if left < 0:
                raise OversizedHeaders
            headers.append(header)
        return headers, changed

    def _string(self, block: bytes, at: int) -> tuple[bytes, int]:
        """Return the string that begins at offset `at`, decoded, and the offset behind it.

        Raises:
            ProtocolError: the block ends within the string.
        """
        huffman = block[at] & 0x80
        size, at = _integer(block, at, 0x7F)
        end = at + size
        text = block[at:end]
        if len(text) != size:
            raise ProtocolError(COMPRESSION_ERROR, "a header block ends within a string")
        return (self._decode_huffman(text) if huffman else text), end

    def _decode_huffman(self, text: bytes) -> bytes:
        known = self._strings.get(text)
        if known is not None:
            return known
        decoded = bytes(decode_huffman(text))
        if _SHORT <= len(text) <= _LONGEST_KNOWN:
            if len(self._strings) >= _KNOWN:
                self._strings.clear()
            self._strings[text] = decoded
        return decoded

    def _entry(self, index: int) -> tuple[bytes, bytes]:
        """Return the name and value of the header with an index in the static table, or behind it in the dynamic one.

        Raises:
            ProtocolError: the index is 0, or greater than that of the last entry.
        """
        if index > _STATIC:
            return self._table[len(self._table) - (index - _STATIC)] if index - _STATIC <= len(self._table) else _none()
        return STATIC_TABLE[index - 1] if index else _none()

    def _add(self, header: tuple[bytes, bytes]) -> None:
        self._table.append(header)
        self._table_size += OVERHEAD + len(header[0]) + len(header[1])
        self._evict()

    def _resize(self, limit: int) -> None:
        if limit > self._largest_table:
            raise ProtocolError(COMPRESSION_ERROR, "a table size update exceeds the limit")
        self._table_limit = limit
        self._evict()

    def _evict(self) -> None:
        """Remove the oldest entries until the dynamic table is within its size limit."""
        while self._table_size > self._table_limit:
            name, value = self._table.pop(0)
            self._table_size -= OVERHEAD + len(name) + len(value)


def _none() -> tuple[bytes, bytes]:
    raise ProtocolError(COMPRESSION_ERROR, "a header has an index outside the tables")


def _integer(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """Return the integer that begins at offset `at`, and the offset behind it.

    `mask` has the bits of the first byte that belong to the integer (RFC 7541, 5.1).

    Raises:
        ProtocolError: the integer has more than five bytes after the first.
        IndexError: the block ends within it.
    """
    value = block[at] & mask
    at += 1
    if value < mask:
        return value, at
    for shift in range(0, 7 * _MOST_BYTES_OF_AN_INTEGER, 7):
        byte = block[at]
        at += 1
        value += (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ProtocolError(COMPRESSION_ERROR, "an integer is too long")
