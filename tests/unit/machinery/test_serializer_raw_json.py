"""Tests of values that Go keeps as received bytes (RawMessage): bytes equal to Go's own encoding are not stored."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tetrapod.machinery.copying import copy_object, copy_value
from tetrapod.machinery.equality import same
from tetrapod.machinery.serializer.raw_json import EACH, Verbatim, encode_texts, remember, text_size, verbatim


def decoded(body: bytes, *path: str) -> Any:
    obj = orjson.loads(body)
    remember(obj, path, body)
    return obj


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '{ "a":1}', '{"a":"<"}', '{"a":[1,\n2]}', '{"a":"\u2028"}', '{"a":"\\u003c"}']
)
def test_a_text_that_the_encoder_would_not_write_is_remembered_and_copied(text: str) -> None:
    obj = decoded(f'{{"kind":"X","data":{text}}}'.encode(), "data")
    assert isinstance(obj["data"], Verbatim)
    assert obj["data"].text == text
    copy = copy_object(obj)
    assert copy["data"] is not obj["data"]
    assert isinstance(copy["data"], Verbatim)
    assert copy["data"].text == text
    assert orjson.dumps(copy["data"]) == orjson.dumps(orjson.loads(text))
    assert text_size(copy["data"]) == len(text.encode())


@pytest.mark.parametrize("text", ['{"a":1}', '{"b":" , : \\" ","a":[1,{}]}', "null", "[1, 2]"])
def test_bytes_equal_to_gos_and_our_encoding_are_not_stored(text: str) -> None:
    obj = decoded(f'{{"kind": "X", "data": {text} }}'.encode(), "data")
    assert not isinstance(obj["data"], Verbatim)


def test_texts_are_remembered_within_lists() -> None:
    body = b'{"kind":"X","list":[{"data":{"a":1}},{"other": 1},{"data":{"a": 2}},{"data":null}]}'
    obj = decoded(body, "list", EACH, "data")
    assert [getattr(item.get("data"), "text", "") for item in obj["list"]] == ["", "", '{"a": 2}', ""]
    (copy,) = copy_value([obj])
    assert copy["list"][2]["data"].text == '{"a": 2}'
    assert encode_texts(copy) == b'{"kind":"X","list":[{"data":{"a":1}},{"other":1},{"data":{"a":2}},{"data":null}]}'


@pytest.mark.parametrize("body", [b'{"list":{"data":{"a": 1}}}', b'{"list":[]}', b'{"list":null}', b'{"list":[1]}'])
def test_a_body_without_the_field_is_unchanged(body: bytes) -> None:
    assert decoded(body, "list", EACH, "data") == orjson.loads(body)


@pytest.mark.parametrize("text", ['{"a":1e5}', '{"a":1e20}', '{"a":1.0,"b":-0}', '{"a":1,"a":2}', '{"a":"\\/"}'])
def test_numbers_and_duplicate_fields_are_remembered(text: str) -> None:
    assert decoded(f'{{"data":{text}}}'.encode(), "data")["data"].text == text


@pytest.mark.parametrize("number", ["1e20", "1e+20", "1e-6", "1.50", "100000000000000000000"])
def test_numbers_are_encoded_as_they_were_sent(number: str) -> None:
    body = f'{{"kind":"X","list":[{{"data":{{"a":{number}}}}},{{"data":{{"b":"\\u0000","c":{number}}}}}]}}'.encode()
    assert encode_texts(decoded(body, "list", EACH, "data")) == body


def test_a_text_equals_a_value_that_go_writes_so() -> None:
    assert verbatim({"a": "<"}, '{"a":"\\u003c"}') == {"a": "<"}
    assert verbatim({"a": 2}, '{"a":2}') == {"a": 2.0}
    assert verbatim({"a": "<"}, '{"a":"<"}') != {"a": "<"}


def test_values_are_compared_by_their_texts() -> None:
    spaced, wide = verbatim({"a": 1}, '{"a": 1}'), verbatim({"a": 1}, '{"a":  1}')
    assert spaced == verbatim({}, '{"a": 1}')
    assert spaced != wide
    assert spaced != {"a": 1}
    assert spaced != {"a": 1}
    assert same({"data": spaced, "list": []}, {"data": spaced})
    assert not same({"data": spaced}, {"data": wide})
    assert not same({"data": {"a": 1}}, {"data": wide})
