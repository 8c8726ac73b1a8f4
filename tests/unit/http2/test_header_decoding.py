"""Tests of the decoding of HTTP/2 header blocks, against hpack's encoder and the examples of RFC 7541."""

from __future__ import annotations

import time

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.http2.frames import ProtocolError
from tetrapod.generic.http2.header_decoding import HeaderDecoder, OversizedHeaders
from tetrapod.generic.http2.header_encoding import literal

NAMES = st.sampled_from([b":path", b"accept", b"x", b"authorization", b"user-agent"]) | st.binary(max_size=20)
LISTS = st.lists(st.lists(st.tuples(NAMES, st.binary(max_size=300)), max_size=12), max_size=12)
LIMIT = 1 << 20


@given(LISTS, st.booleans())
def test_header_blocks_of_the_library_hpack_are_decoded(lists: list[list[tuple[bytes, bytes]]], huffman: bool) -> None:
    encoder, decoder = hpack.Encoder(), HeaderDecoder(LIMIT)
    for number, headers in enumerate(lists):
        if number % 5 == 4:
            encoder.header_table_size = 200 * (number % 7)
        assert decoder.decode(encoder.encode(headers, huffman=huffman)) == headers


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_rejected(block: bytes) -> None:
    decoder = HeaderDecoder(10_000)
    for _ in range(2):
        try:
            decoder.decode(block)
        except (ProtocolError, OversizedHeaders):
            return


def test_the_examples_of_the_rfc() -> None:
    """RFC 7541, C.4."""
    decoder = HeaderDecoder(LIMIT)
    first = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
    assert decoder.decode(bytes.fromhex("828684418cf1e3c2e5f23a6ba0ab90f4ff")) == first
    assert decoder.decode(bytes.fromhex("828684be5886a8eb10649cbf")) == [*first, (b"cache-control", b"no-cache")]
    third = decoder.decode(bytes.fromhex("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"))
    assert third[-1] == (b"custom-key", b"custom-value")


def test_a_block_is_decoded_anew_once_the_table_has_changed() -> None:
    decoder = HeaderDecoder(LIMIT)
    decoder.decode(b"\x40\x01a\x011")
    assert decoder.decode(b"\xbe") == decoder.decode(b"\xbe") == [(b"a", b"1")]
    decoder.decode(b"\x40\x01a\x012")
    assert decoder.decode(b"\xbe") == [(b"a", b"2")]


def test_an_entry_larger_than_the_table_empties_it() -> None:
    decoder = HeaderDecoder(LIMIT)
    decoder.decode(b"\x40\x01a\x011")
    decoder.decode(hpack.Encoder().encode([("x", "y" * 5000)]))
    with pytest.raises(ProtocolError):
        decoder.decode(b"\xbe")


def test_a_list_beyond_the_limit_is_rejected() -> None:
    decoder = HeaderDecoder(100)
    decoder.decode(literal(b"a" * 34, b"b" * 34))
    with pytest.raises(OversizedHeaders):
        decoder.decode(literal(b"a" * 34, b"b" * 35))


def test_a_block_of_many_literals_takes_time_in_proportion() -> None:
    """hpack's decoder takes over a second."""
    block = b"\0\1a\1b" * 100_000
    began = time.process_time()
    assert len(HeaderDecoder(1 << 30).decode(block)) == 100_000
    assert time.process_time() - began < 0.5
