"""Tests of arbitrary bytes as protobuf: they yield an object or a `DecodeError`, in time at most linear in their
length.
"""

from __future__ import annotations

import time

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.protobuf.wire import delimited, tag, varint

POD = GroupVersionKind("", "v1", "Pod")
CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
JOB = GroupVersionKind("batch", "v1", "Job")
SIZE = 1 << 20


def field(number: int, data: bytes) -> bytes:
    return delimited(tag(number, 2), data)


def body(message: bytes) -> bytes:
    return b"k8s\0" + field(2, message)


def decoded(message: bytes, kind: GroupVersionKind) -> Object | None:
    try:
        found = protobuf.decode(body(message), kind)
    except protobuf.DecodeError:
        return None
    orjson.dumps(found)
    return found


wire = st.recursive(
    st.binary(max_size=20),
    lambda inner: st.lists(
        st.one_of(
            st.builds(field, st.integers(1, 45), inner),
            st.builds(
                lambda number, value: tag(number, 0) + varint(value),
                st.integers(1, 45),
                st.integers(-(1 << 63), (1 << 63) - 1),
            ),
            st.builds(
                lambda number, data: tag(number, 1) + data, st.integers(1, 45), st.binary(min_size=8, max_size=8)
            ),
            st.builds(lambda number, data: tag(number, 3) + data + tag(number, 4), st.integers(1, 45), inner),
        ),
        max_size=6,
    ).map(b"".join),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(wire, st.sampled_from([POD, CRD, JOB]))
def test_messages_of_any_shape(message: bytes, kind: GroupVersionKind) -> None:
    decoded(message, kind)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_rejected(data: bytes) -> None:
    for given_body in (data, b"k8s\0" + data, body(data)):
        try:
            protobuf.decode(given_body, POD)
        except protobuf.DecodeError:
            continue


def nested_schema(depth: int, inner: bytes = b"") -> bytes:
    for _ in range(depth):
        inner = field(29, field(1, b"p") + field(2, inner))  # properties
    return field(2, field(7, field(4, field(1, inner))))


def test_nesting_within_the_limit_is_decoded_and_deeper_nesting_rejected() -> None:
    assert decoded(nested_schema(40), CRD) is not None
    for depth in (150, 250, 1000, 5000):
        with pytest.raises(protobuf.DecodeError, match="max depth"):
            protobuf.decode(body(nested_schema(depth)), CRD)


def test_json_within_a_message_counts_as_nesting() -> None:
    value = b"[" * 240 + b"]" * 240
    assert decoded(nested_schema(1, field(8, field(1, value[100:-100]))), CRD) is not None
    for depth, json in ((1, value), (60, value), (100, value[100:-100]), (1, b"[" * 5000 + b"]" * 5000)):
        with pytest.raises(protobuf.DecodeError, match="max depth"):
            protobuf.decode(body(nested_schema(depth, field(8, field(1, json)))), CRD)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"\x0a\x05x", "unexpected EOF"),
        (b"\x0a", "unexpected EOF"),
        (b"\x08\x01", "proto: wrong wireType = 0 for field Metadata"),
        (b"\x7e", "proto: illegal wireType 6"),
        (b"\x00\x01", "proto: Pod: illegal tag 0 (wire type 0)"),
        (b"\x0c", "proto: Pod: wiretype end group for non-group"),
        (b"\xff\xff\xff\xff\x7f", "proto: Pod: illegal tag -1 (wire type 34359738367)"),
        (field(1, field(8, b"\x0c")), "proto: Timestamp: wiretype end group for non-group"),
        (field(1, field(11, b"\x1c")), "proto: unexpected end of group"),
        (field(1, field(11, b"\x08\x05k")), "unexpected EOF"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (b"\xff" * 11, "proto: integer overflow"),
        (b"\x7b\x7b", "unexpected EOF"),
    ],
)
def test_rejections_say_what_is_wrong(message: bytes, text: str) -> None:
    with pytest.raises(protobuf.DecodeError) as caught:
        protobuf.decode(body(message), POD)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", "empty data"), (b"k8s\0", "empty body"), (b"{}", "expected prefix [107 56 115 0]")],
)
def test_bodies_that_are_no_envelope(data: bytes, text: str) -> None:
    with pytest.raises(protobuf.DecodeError) as caught:
        protobuf.decode(data, POD)
    assert text in str(caught.value)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_numbers_that_json_cannot_express_are_rejected(number: str) -> None:
    import struct

    with pytest.raises(protobuf.DecodeError, match="unsupported value"):
        protobuf.decode(body(nested_schema(1, tag(9, 1) + struct.pack("<d", float(number)))), CRD)


REPEATED = {
    "containers": lambda: field(2, field(2, b"") * (SIZE // 2)),
    "the same struct": lambda: field(1, field(1, b"x")) * (SIZE // 5),
    "labels": lambda: field(1, field(11, field(1, b"k")) * (SIZE // 5)),
    "open groups": lambda: b"\x7b" * SIZE,
    "unknown fields": lambda: b"\x78\x01" * (SIZE // 2),
    "one long string": lambda: field(1, field(1, b"x" * SIZE)),
    "numbers": lambda: field(2, field(14, b"\x20\x01" * (SIZE // 2))),  # supplementalGroups
    "packed numbers": lambda: field(2, field(14, field(4, b"\x01" * SIZE))),
}


@pytest.mark.parametrize("name", REPEATED)
def test_the_time_is_in_proportion_to_the_size(name: str) -> None:
    message = REPEATED[name]()
    start = time.process_time()
    decoded(message, POD)
    assert time.process_time() - start < 10, "seconds for a megabyte, which takes about one"


def test_a_message_that_comes_twice_is_merged() -> None:
    spec = field(2, tag(4, 0) + varint(30)) + field(2, field(3, b"Never"))
    assert decoded(spec, POD) == {"spec": {"terminationGracePeriodSeconds": 30, "restartPolicy": "Never"}}


def test_lists_of_numbers_may_be_packed() -> None:
    groups = tag(4, 0) + varint(1) + field(4, varint(300) + varint(-1)) + tag(4, 0) + varint(2)
    assert decoded(field(2, field(14, groups)), POD) == {
        "spec": {"securityContext": {"supplementalGroups": [1, 300, -1, 2]}}
    }
