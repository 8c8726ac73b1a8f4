"""CBOR bodies of built-in kinds are decoded by their types. All expectations are those of a kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.machinery import cbor
from tetrapod.machinery.cbor.typed import TypeMismatch, decode_typed
from tetrapod.machinery.gvk import GroupVersionKind
from tetrapod.machinery.types.definitions import schema_for

SECRET = schema_for(GroupVersionKind("", "v1", "Secret"))
METADATA = SECRET.properties["metadata"]
POD = schema_for(GroupVersionKind("", "v1", "Pod"))
REVISION = schema_for(GroupVersionKind("apps", "v1", "ControllerRevision"))
TYPE = "64 74797065 61 74"
KEY = "(map key is of type primitives and cannot be used to match struct field name)"
ARRAY = "(cannot decode CBOR array to struct without toarray option)"
DEADLINE = "a1 75 616374697665446561646c696e655365636f6e6473"
OVERHEAD = "a1 68 6f76657268656164 a1 63 637075"


def secret(data: str, field: str = "64 64617461") -> bytes:
    """Return a Secret with a field, by default `data`, whose value is a map with one encoded member."""
    return bytes.fromhex(f"a1 {field} a1 {data}")


def pod(spec: str) -> bytes:
    return bytes.fromhex("a1 64 73706563") + bytes.fromhex(spec)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("616b 44 61476b3d", "aGk="),
        ("616b d5 42 6869", "aGk="),  # the tags 21 to 23 say that the bytes are not encoded
        ("616b d6 42 6869", "aGk="),
        ("616b d7 42 6869", "aGk="),
        ("616b d821 44 61476b3d", "aGk="),
        ("616b 5f 42 6147 42 6b3d ff", "aGk="),
        ("616b 40", ""),
        ("616b f6", None),
        ("616b 82 1868 1869", [104, 105]),
    ],
)
def test_bytes_are_base64_unless_a_tag_is_around_them(data: str, value: Any) -> None:
    assert decode_typed(secret(data), SECRET)[0] == {"data": {"k": value}}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("616b 42 6869", "cbor: failed to decode base64 from byte string: illegal base64 data at input byte 0"),
        ("616b 42 61ff", "cbor: failed to decode base64 from byte string: illegal base64 data at input byte 1"),
    ],
)
def test_bytes_that_are_not_base64_are_rejected(data: str, text: str) -> None:
    with pytest.raises(cbor.InvalidError) as caught:
        decode_typed(secret(data), SECRET)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("body", "node", "text"),
    [
        (secret("616b 64 61476b3d"), SECRET, "UTF-8 text string into Go struct field v1.X.data of type []uint8"),
        (secret("616b 05"), SECRET, "positive integer into Go struct field v1.X.data of type []uint8"),
        (secret("01 40"), SECRET, "positive integer into Go struct field v1.X.data of type string"),
        (bytes.fromhex("a1f501"), SECRET, f"primitives into Go value of type string {KEY}"),
        (bytes.fromhex("80"), SECRET, f"array into Go value of type v1.Secret {ARRAY}"),
        (
            bytes.fromhex("a1 63 756964 01"),
            METADATA,
            "positive integer into Go struct field v1.X.uid of type types.UID",
        ),
        (
            pod(f"{DEADLINE} 1bffffffffffffffff"),
            POD,
            "positive integer into Go struct field v1.X.spec of type int64 (18446744073709551615 overflows int64)",
        ),
        (pod(f"{DEADLINE} f93c00"), POD, "primitives into Go struct field v1.X.spec of type int64"),
        (
            pod(f"{OVERHEAD} 3bffffffffffffffff"),
            POD,
            "negative integer into Go struct field v1.X.spec of type string "
            "(-18446744073709551616 overflows Go's int64)",
        ),
        (pod(f"{OVERHEAD} 01"), POD, "positive integer into Go struct field v1.X.spec of type string"),
    ],
)
def test_values_of_wrong_types_are_rejected_with_upstreams_text(body: bytes, node: Any, text: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        decode_typed(body, node)
    assert caught.value.text("v1.X") == f"cbor: cannot unmarshal {text}"


def test_unknown_fields_are_not_read() -> None:
    body = bytes.fromhex("a2 61 7a a2 61 61 01 61 61 02 64 74797065 61 74")  # "z" has a duplicate member
    assert decode_typed(body, SECRET) == ({"type": "t"}, 0)


@pytest.mark.parametrize(
    "value",
    ["bf 61 61 9f 01 ff 5f 41 61 ff 80 ff", "d6 82 a0 a1 01 d7 41 61", "f7", "f93e00", "1bffffffffffffffff", "62c328"],
)
def test_unknown_fields_end_where_their_value_ends(value: str) -> None:
    body = bytes.fromhex(f"bf 61 7a {value} {TYPE} ff")
    assert decode_typed(body, SECRET) == ({"type": "t"}, 0)


def test_a_field_may_not_occur_twice_even_if_it_is_unknown() -> None:
    for body in ("a2 61 7a 01 61 7a 02", "a2 64 74797065 61 74 44 74797065 61 74", "bf 01 01 01 01 ff"):
        with pytest.raises(cbor.InvalidError, match=r"found duplicate map key .* at map element index 1"):
            decode_typed(bytes.fromhex(body), SECRET)


BAD_METADATA = "68 6d65746164617461 a1 63 626164 01"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (f"a3 {TYPE} {BAD_METADATA} 61 7a 02", 2),
        (f"a2 {TYPE} {BAD_METADATA}", 0),
        (f"a3 {BAD_METADATA} 61 7a 02 01 03", 1),
        (f"a2 {TYPE} 01 03", 1),
        (f"a1 {TYPE}", None),
    ],
)
def test_the_first_unknown_field_is_known_by_its_place(body: str, place: int | None) -> None:
    """The unknown fields of a map precede those in its values."""
    assert decode_typed(bytes.fromhex(body), SECRET)[1] == place


def test_a_field_that_occurs_twice_is_reported_before_a_wrong_type() -> None:
    with pytest.raises(cbor.InvalidError, match=r'found duplicate map key "z" at map element index 2'):
        decode_typed(bytes.fromhex("a3 64 74797065 05 61 7a 01 61 7a 02"), SECRET)


def test_unknown_fields_of_list_elements_are_known_by_their_place() -> None:
    containers = [{"name": "c"}, {"img": 1}, {"name": "d", "img": 1}]
    assert decode_typed(cbor.encode({"spec": {"containers": containers}}), POD)[1] == 0


def test_undefined_is_null_for_pointers_only() -> None:
    assert decode_typed(pod(f"{DEADLINE} f7"), POD)[0] == {"spec": {"activeDeadlineSeconds": None}}
    with pytest.raises(cbor.InvalidError, match="simple value 23 is not recognized"):
        decode_typed(bytes.fromhex("a1 64 74797065 f7"), SECRET)


def test_raw_values_are_decoded_with_an_error_text_of_their_own() -> None:
    assert decode_typed(cbor.encode({"data": {"a": [1]}}), REVISION)[0] == {"data": {"a": [1]}}
    with pytest.raises(cbor.InvalidError, match=r"^failed to transcode RawExtension to JSON: failed to parse Raw"):
        decode_typed(bytes.fromhex("a1 64 64617461 1bffffffffffffffff"), REVISION)
