"""Tests of JSON bodies: errors and their messages, duplicate fields, unusual numbers and characters."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.golang.json_numbers import integral
from tetrapod.machinery.golang.json_syntax import explain
from tetrapod.machinery.serializer import json, type_meta
from tetrapod.machinery.serializer.errors import DecodeError, NumberError

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b'{"a":{},}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a":1} trailing', "invalid character 't' after top-level value"),
        (b"name=a", "invalid character 'a' in literal null (expecting 'u')"),
        (b'{"a":NaN}', "invalid character 'N' looking for beginning of value"),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b'{"a":"\x01"}', r"invalid character '\x01' in string literal"),
        (b"{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":01}', "invalid character '1' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b"[" * 300 + b"]" * 300, "invalid character '[' exceeded max depth"),
        (b"[" * 100_000, "invalid character '[' exceeded max depth"),
    ],
)
def test_malformed_json_has_the_errors_of_go(data: bytes, message: str) -> None:
    for unstructured in (False, True):
        with pytest.raises(DecodeError) as raised:
            json.decode(data, unstructured=unstructured)
        assert str(raised.value) == message


@given(VALUES, st.sampled_from([None, 2]))
def test_json_values_survive_a_round_trip(value: Any, indent: int | None) -> None:
    encoded = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else 0)
    assert json.decode(encoded) == (value, [])
    assert explain(encoded) == ""


@given(st.binary(max_size=30) | st.text(alphabet='{}[]",:01-.eE \\un', max_size=30).map(str.encode))
def test_any_bytes_are_decoded_or_explained(data: bytes) -> None:
    try:
        json.decode(data)
    except NumberError:
        return
    except DecodeError as error:
        assert str(error) == explain(data) != ""
    else:
        assert explain(data) == ""


def test_an_object_that_comes_twice_is_merged_in_built_in_kinds_only() -> None:
    data = b'{"kind":"A","kind":"B","metadata":{"name":"a"},"metadata":{"labels":{"x":"y"}}}'
    duplicates = ['duplicate field "kind"', 'duplicate field "metadata"']
    assert json.decode(data) == ({"kind": "B", "metadata": {"name": "a", "labels": {"x": "y"}}}, duplicates)
    assert json.decode(data, unstructured=True) == ({"kind": "B", "metadata": {"labels": {"x": "y"}}}, duplicates)


@pytest.mark.parametrize(
    ("data", "obj", "duplicates"),
    [
        (b'{"a": 1, "a": 2}', {"a": 2}, ['duplicate field "a"']),
        (b'{"a": " x", "a": "x"}', {"a": "x"}, ['duplicate field "a"']),
        (b'{"a": [{"b": {}}, {"b": 1, "b": 1}]}', {"a": [{"b": {}}, {"b": 1}]}, ['duplicate field "a[1].b"']),
        (b'{"a b": 1, "ab": 2}', {"a b": 1, "ab": 2}, []),
        (b' {"a": "x  y",\n\t"b": [1, 2.5, null]}\r\n', {"a": "x  y", "b": [1, 2.5, None]}, []),
    ],
)
def test_duplicate_fields_are_found_in_bodies_with_white_space(data: bytes, obj: Any, duplicates: list[str]) -> None:
    assert json.decode(data) == (obj, duplicates)


def test_unknown_fields_are_looked_up_not_searched() -> None:
    """A body may have hundreds of thousands of them."""

    class Listed(list[str]):
        def __contains__(self, _: object) -> bool:
            raise AssertionError("searched")

    assert json.strict_errors(b'{"a":1,"b":2}', Listed(["b"])) == ['unknown field "b"']


def test_strict_errors_come_in_document_order() -> None:
    data = b'{"spec":{"x":1,"c":[{"i":1,"i":2,"z":{"q":1,"q":2}}],"n":1,"n":2},"y":0,"spec":{"x":2}}'
    assert json.strict_errors(data, {"spec.x", "spec.c[0].z", "y"}) == [
        'unknown field "spec.x"',
        'duplicate field "spec.c[0].i"',
        'unknown field "spec.c[0].z"',
        'duplicate field "spec.n"',
        'unknown field "y"',
        'duplicate field "spec"',
    ]


def test_floats_stay_floats_until_they_are_written() -> None:
    whole = json.decode(b'{"a":[1.0,2.5,1e3,1e17,9223372036854775807]}', unstructured=True).obj["a"]
    assert [type(n) for n in whole] == [float, float, float, float, int]
    assert integral(whole) == [1, 2.5, 1000, 10**17, 2**63 - 1]
    assert [type(n) for n in whole] == [int, float, int, int, int]


def test_numbers_beyond_64_bits() -> None:
    assert json.decode(b'{"a":[99999999999999999999,9223372036854775808]}').obj == {"a": [1e20, 2.0**63]}
    with pytest.raises(NumberError, match="cannot unmarshal number 1e400"):
        json.decode(b'{"a":1e400}')


def test_invalid_characters_are_replaced_one_by_one() -> None:
    assert json.decode(rb'{"k":"\ud800 \udc00 \ud83d\ude00"}').obj == {"k": "\ufffd \ufffd \U0001f600"}
    assert json.decode(b'{"k":"\xff\xe2\x82"}').obj == {"k": "\ufffd\ufffd\ufffd"}


def test_kind_and_metadata_come_first() -> None:
    obj = {"spec": {}, "metadata": {"name": "a"}, "apiVersion": "v1", "kind": "Pod"}
    assert json.encode(obj) == b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{}}'


def test_kind_and_version_of_a_body_are_recognized() -> None:
    assert type_meta.recognize(None) == ({}, "", "")
    assert type_meta.recognize({"kind": "Pod", "apiVersion": None})[1:] == ("", "Pod")
    with pytest.raises(DecodeError, match="unexpected GroupVersion string: a/b/c"):
        type_meta.recognize({"apiVersion": "a/b/c"})
    with pytest.raises(DecodeError, match=r"json: cannot unmarshal array into Go struct field \.kind of type string"):
        type_meta.recognize({"kind": []})
    with pytest.raises(DecodeError, match="json: cannot unmarshal number into Go value of type struct"):
        type_meta.recognize(12)


def test_rejected_bodies_are_summed_up() -> None:
    assert type_meta.summary(b"") == "<empty>"
    assert type_meta.summary(b'{"apiVersion":"v1","kind":"ConfigMap"}') == '{"apiVersion":"v1","kind":"Con ...'
    assert type_meta.summary(b"[]") == "5b5d"
