"""Tests of values that Go keeps as received bytes (RawMessage): bytes equal to Go's own encoding are not stored."""

from __future__ import annotations

import orjson
import pytest

from tetrapod.machinery.serializer.raw_json import Verbatim, carry, remember


@pytest.mark.parametrize("text", ['{"a": 1}', '{ "a":1}', '{"a":"<"}', '{"a":[1,\n2]}', '{"a":"\u2028"}'])
def test_a_text_that_go_would_not_write_is_remembered_and_carried(text: str) -> None:
    body = f'{{"kind":"X","data":{text}}}'.encode()
    obj = orjson.loads(body)
    remember(obj, "data", body)
    assert isinstance(obj["data"], Verbatim)
    assert obj["data"].text == text
    copy = carry(obj, orjson.loads(orjson.dumps(obj)))
    assert isinstance(copy["data"], Verbatim)
    assert copy["data"].text == text
    assert orjson.dumps(copy["data"]) == orjson.dumps(orjson.loads(text))


@pytest.mark.parametrize("text", ['{"a":1}', '{"b":" , : \\" ","a":[1,{}]}', '{"a":"\\u003c"}', "null", "[1, 2]"])
def test_bytes_equal_to_gos_encoding_are_not_stored(text: str) -> None:
    body = f'{{"kind": "X", "data": {text} }}'.encode()
    obj = orjson.loads(body)
    remember(obj, "data", body)
    assert not isinstance(obj["data"], Verbatim)
