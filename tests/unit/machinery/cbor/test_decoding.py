"""CBOR bodies are decoded as upstream's serializer decodes them. All expectations are those of a kube-apiserver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery import cbor
from tetrapod.machinery.cbor.decoding import MAX_ITEMS
from tetrapod.machinery.cbor.diagnostic import diagnose
from tetrapod.machinery.cbor.wellformed import check_well_formed
from tetrapod.machinery.depth import MAX_DEPTH


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("d9d9f7a14161f6", {"a": None}),
        ("a1d8204161 01", {"a": 1}),  # a tag without a meaning here, around a name
        ("bf6161 9f01ff ff", {"a": [1]}),
        ("5f41614162ff", "ab"),
        ("c11a65000000", "2023-09-12T06:06:56Z"),
        ("c1fb41d9400000200000", "2023-09-12T06:06:56.5Z"),
        ("c120", "1969-12-31T23:59:59Z"),
        ("c07819323031332d30332d32315432303a30343a30302b30313a3030", "2013-03-21T20:04:00+01:00"),
        ("d54568656c6c6f", "aGVsbG8"),
        ("d64568656c6c6f", "aGVsbG8="),
        ("d74568656c6c6f", "68656c6c6f"),
        ("d6824568656c6c6fd74161", ["aGVsbG8=", "61"]),
        ("d66161", "a"),
        ("d6a1416b4176", {"aw==": "dg=="}),
        ("d65f41614162ff", "YWI="),
        ("41ff", "\ufffd"),
        ("3b7fffffffffffffff", -(1 << 63)),
        ("fa47c35000", 100000.0),
        ("f93c00", 1.0),
        ("a1f601", {"": 1}),
    ],
)
def test_well_formed_items_become_json_values(data: str, value: Any) -> None:
    assert cbor.decode(bytes.fromhex(data)) == value


PRIMITIVES = "cbor: data item of cbor type primitives is not accepted by protocol: "


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("", "EOF"),
        ("a141", "unexpected EOF"),
        ("d818", "unexpected EOF"),
        ("a000", "cbor: 1 bytes of extraneous data starting at index 1"),
        ("f97e00", PRIMITIVES + "floating-point NaN"),
        ("f97c00", PRIMITIVES + "floating-point infinity"),
        ("c24101", "cbor: data item of cbor type tag is not accepted by protocol: bignum"),
        ("1c", "cbor: invalid additional information 28 for type positive integer"),
        ("ff", 'cbor: unexpected "break" code'),
        ("bf4161ff", 'cbor: unexpected "break" code'),
        ("f818", "cbor: invalid simple value 24 for type primitives"),
        ("5bffffffffffffffff", "cbor: byte string length 18446744073709551615 is too large, causing integer overflow"),
        ("9bffffffffffffffff", "cbor: array length 18446744073709551615 is too large, it would cause integer overflow"),
        ("ba00300000", "cbor: exceeded max number of key-value pairs 2097152 for CBOR map"),
        ("5f6161ff", "cbor: wrong element type UTF-8 text string for indefinite-length byte string"),
        ("5f5f4161ffff", "cbor: indefinite-length byte string chunk is not definite-length"),
    ],
)
def test_malformed_data_is_rejected_with_upstreams_text(data: str, text: str) -> None:
    for read in (cbor.decode, check_well_formed):
        with pytest.raises(cbor.MalformedError) as caught:
            read(bytes.fromhex(data))
        assert str(caught.value) == text


INT64 = "integer into Go value of type int64 "


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("f7", PRIMITIVES + "simple value 23 is not recognized"),
        ("f8ff", PRIMITIVES + "simple value 255 is not recognized"),
        ("61ff", "cbor: invalid UTF-8 string"),
        ("1bffffffffffffffff", f"cbor: cannot unmarshal positive {INT64}(18446744073709551615 overflows Go's int64)"),
        ("3bffffffffffffffff", f"cbor: cannot unmarshal negative {INT64}(-18446744073709551616 overflows Go's int64)"),
        ("a24161016161 02", 'cbor: found duplicate map key "a" at map element index 1'),
        ("a10102", "cbor: cannot unmarshal positive integer into Go value of type string"),
        ("a18002", "cbor: cannot unmarshal array into Go value of type string"),
        ("c04178", "cbor: tag number 0 must be followed by text string, got byte string"),
        ("c16173", "cbor: tag number 1 must be followed by integer or floating-point number, got UTF-8 text string"),
    ],
)
def test_unacceptable_items_are_rejected_with_upstreams_text(data: str, text: str) -> None:
    with pytest.raises(cbor.InvalidError) as caught:
        cbor.decode(bytes.fromhex(data))
    assert str(caught.value) == text
    check_well_formed(bytes.fromhex(data))


@pytest.mark.parametrize("read", [cbor.decode, check_well_formed])
def test_depth_is_limited(read: Callable[[bytes], object]) -> None:
    read(cbor.MAGIC + b"\x81" * (MAX_DEPTH - 1) + b"\x80")
    for levels in (MAX_DEPTH, 100_000):
        for head in (b"\x81", b"\x9f", b"\xa1\x41a", b"\xd8\x20"):
            with pytest.raises(cbor.MalformedError, match="exceeded max nested level 10000"):
                read(head * levels + b"\x80")


@pytest.mark.parametrize("read", [cbor.decode, check_well_formed])
def test_the_number_of_items_is_limited(read: Callable[[bytes], object]) -> None:
    with pytest.raises(cbor.MalformedError, match="exceeded max number of data items"):
        read(b"\x9a\x00\x2d\xc6\xc0" + b"\xf6" * (MAX_ITEMS + 1))


def _rejection(read: Callable[[bytes], object], data: bytes) -> str:
    try:
        read(data)
    except cbor.MalformedError as error:
        return str(error)
    except cbor.InvalidError:
        pass
    return ""


def _heads() -> st.SearchStrategy[bytes]:
    """Return a strategy for the first bytes of items, above all of those that contain others."""
    containers = st.sampled_from([0x80, 0x81, 0x82, 0x9F, 0xA0, 0xA1, 0xA2, 0xBF, 0xC0, 0xC1, 0xC6, 0x5F, 0x7F, 0xFF])
    scalars = st.sampled_from([0x00, 0x18, 0x20, 0x41, 0x61, 0xF6, 0xF8, 0xF9, 0xFA])
    return st.lists(st.one_of(containers, scalars, st.integers(0, 255)), max_size=12).map(bytes)


@given(st.one_of(_heads(), _heads().map(cbor.MAGIC.__add__)))
def test_the_check_rejects_what_the_decoder_finds_malformed(data: bytes) -> None:
    assert _rejection(check_well_formed, data) == _rejection(cbor.decode, data)


def test_every_prefix_of_a_body_is_malformed() -> None:
    body = cbor.encode({"kind": "Pod", "spec": {"numbers": [1, -300, 1.5, 3.1, None, True], "long": "x" * 300}})
    for end in range(3, len(body)):
        with pytest.raises(cbor.MalformedError):
            cbor.decode(body[:end])


def test_items_are_shown_in_diagnostic_notation() -> None:
    assert diagnose(bytes.fromhex("d9d9f7a2446b696e64d82043466f6f41618341ff6162f6")) == (
        "55799({'kind': 32('Foo'), 'a': [h'ff', \"b\", null]})"
    )
    assert diagnose(bytes.fromhex("bf41617f61626163ffff")) == '{_ \'a\': (_ "b", "c")}'
    floats = "85 fb7e37e43c8800759c fb3e7ad7f29abcaf48 fb4341c37937e08000 fb3eb0c6f7a0b5ed8d f98000"
    assert diagnose(bytes.fromhex(floats)) == "[1.0e+300, 1.0e-7, 10000000000000000.0, 0.000001, -0.0]"
