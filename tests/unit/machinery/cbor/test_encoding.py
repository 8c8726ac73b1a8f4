"""Values are encoded as CBOR byte for byte as upstream's serializer encodes them."""

from __future__ import annotations

from tetrapod.machinery import cbor

STORED = (
    "d9d9f7a4446b696e6443466f6f4473706563a4417341784466726565a141618501f94000f6f52645726174696ff93e004872"
    "65706c6963617301486d65746164617461a643756964582433346264323863362d613738652d343031392d623034632d3461"
    "64393464313864373833446e616d65427569496e616d6573706163654764656661756c744a67656e65726174696f6e014d6d"
    "616e616765644669656c647381a64474696d6554323032362d31312d32335431383a32353a32305a476d616e616765724174"
    "486669656c64735631a146663a73706563a5412ea043663a73a046663a66726565a2412ea043663a61a047663a726174696f"
    "a04a663a7265706c69636173a0496f7065726174696f6e465570646174654a61706956657273696f6e4865782e696f2f7631"
    "4a6669656c647354797065484669656c64735631516372656174696f6e54696d657374616d7054323032362d31312d323354"
    "31383a32353a32305a4a61706956657273696f6e4865782e696f2f7631"
)
"""A custom resource as a kube-apiserver stored it."""


def test_a_stored_object_has_the_same_bytes_as_in_upstream() -> None:
    stored = bytes.fromhex(STORED)
    obj = cbor.decode(stored)
    assert obj["spec"] == {"replicas": 1, "ratio": 1.5, "s": "x", "free": {"a": [1, 2.0, None, True, -7]}}
    assert cbor.encode(obj) == stored
    assert cbor.encode(dict(reversed(obj.items()))) == stored


def test_numbers_have_their_shortest_form() -> None:
    numbers = {
        0: "00", 23: "17", 24: "1818", 255: "18ff", 256: "190100", 65536: "1a00010000",
        (1 << 63) - 1: "1b7fffffffffffffff",
        -1: "20", -256: "38ff", -(1 << 63): "3b7fffffffffffffff",
        1.5: "f93e00", 100000.5: "fa47c35040", 3.1: "fb4008cccccccccccd", 1e300: "fb7e37e43c8800759c",
    }  # fmt: skip
    for number, encoded in numbers.items():
        assert cbor.encode(number).removeprefix(cbor.MAGIC).hex() == encoded
    assert cbor.encode(-0.0).removeprefix(cbor.MAGIC).hex() == "f98000"


def test_integers_that_json_wrote_for_large_floats_are_floats() -> None:
    for number in (1 << 63, 10**19, (1 << 64) - 1, 10**300, -(1 << 63) - 1, -(10**19)):
        assert cbor.decode(cbor.encode({"x": number})) == {"x": float(number)}


def test_objects_of_responses_begin_with_any_member() -> None:
    obj = {"kind": "A", "apiVersion": "v1", "metadata": {}}
    encodings = {cbor.shuffled(obj) for _ in range(100)}
    assert len(encodings) == 3
    assert all(cbor.decode(encoding) == obj for encoding in encodings)
    events = {cbor.event("ADDED", cbor.encode(obj)) for _ in range(100)}
    assert len(events) == 2
    assert all(cbor.decode(event) == {"type": "ADDED", "object": obj} for event in events)
