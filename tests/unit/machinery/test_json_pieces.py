"""Large JSON documents are decoded piece by piece, with the result of decoding them at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery import copying, json_pieces
from tetrapod.machinery.json_pieces import NotInPiecesError, loads, loads_with
from tetrapod.machinery.serializer import json as json_serializer
from tetrapod.machinery.serializer import yaml_flow
from tetrapod.machinery.serializer.errors import DecodeError

LARGE = b'{"u":[%b]}' % b",".join([b'{"a":' * 100 + b"1" + b"}" * 100] * 5000)
TEXTS = st.sampled_from(["", "a", "b", 'q"', "\\", '\\"', "[{,", "é", "]}"])
VALUES = st.recursive(
    st.none() | st.integers(-5, 5) | st.just(1.5) | TEXTS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4),
    max_leaves=40,
)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut every document, into pieces of a few bytes."""
    for name, value in (("LARGE_DOCUMENT", 0), ("_FEW_CONTAINERS", -1), ("PIECE", 7)):
        monkeypatch.setattr(json_pieces, name, value)


@pytest.fixture
def decoded_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the bytes of each call of orjson."""
    sizes: list[int] = []

    def recording(data: bytes) -> Any:
        sizes.append(len(data))
        return orjson.loads(data)

    monkeypatch.setattr(json_pieces, "orjson", SimpleNamespace(loads=recording))
    return sizes


@given(value=VALUES, indented=st.booleans())
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.filterwarnings("ignore:.*function-scoped")
def test_pieces_give_the_document(value: Any, indented: bool) -> None:
    data = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indented else None)
    got = loads(data)
    assert got == value
    assert orjson.dumps(got) == orjson.dumps(value)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "data",
    [
        b'[1,"aaaaaaaaaa",]',
        b'[,"aaaaaaaaaaaaa"]',
        b'["aaaaaaaaaa",,1]',
        b'{"aaaaaaaaaaaa":1,}',
        b'{"aaaaaaaaaaaa":1,2}',
        b'["aaaaaaaaaaa",[1,2}]',
        b'["aaaaaaaaaaa",[1,2]',
        b'["aaaaaaaaaaa",1]]',
        b'["aaaaaaaaaaa","b',
        b'["aaaaaaaaaaa",1],[2]',
        b'["aaaaaaaaaaa", \\"b",1]',
    ],
)
def test_malformed_documents_are_rejected(data: bytes) -> None:
    with pytest.raises(ValueError):
        loads(data)
    with pytest.raises(DecodeError):
        json_serializer.decode(data)


@pytest.mark.usefixtures("small_pieces")
def test_the_last_of_several_duplicates_wins_across_pieces() -> None:
    assert loads(b'{"a":1,"bbbbbbbb":2,"a":3}') == {"a": 3, "bbbbbbbb": 2}


@pytest.mark.usefixtures("small_pieces")
def test_an_open_duplicate_is_left_to_the_slow_decoder() -> None:
    data = b'{"a":{},"b":2,"a":{"c":"ccccccccc","d":4}}'
    with pytest.raises(NotInPiecesError):
        loads(data)
    decoded = json_serializer.decode(data)
    assert decoded.obj == {"a": {"c": "ccccccccc", "d": 4}, "b": 2}
    assert decoded.duplicates == ['duplicate field "a"']


@pytest.mark.usefixtures("small_pieces")
def test_apply_configurations_have_sorted_keys() -> None:
    obj = yaml_flow.decode(b'{"b":{"d":1,"c":[{"f":1,"e":2}]},"a":"aaaaaaaaaa"}')
    assert orjson.dumps(obj) == b'{"a":"aaaaaaaaaa","b":{"c":[{"e":2,"f":1}],"d":1}}'
    assert yaml_flow.decode(b'{"a":"aaaaaaaaaa","b":1,"a":1}') is None


def test_no_call_decodes_much(decoded_sizes: list[int]) -> None:
    decoded = json_serializer.decode(LARGE)
    assert len(decoded.obj["u"]) == 5000
    assert copying.copy_object(decoded.obj) == decoded.obj
    assert len(decoded_sizes) > 60
    assert max(decoded_sizes) < 2 * json_pieces.PIECE


def test_small_documents_are_decoded_at_once(decoded_sizes: list[int]) -> None:
    json_serializer.decode(b'{"a":[1,2,3]}')
    assert decoded_sizes == [13]


def test_decoders_of_other_forms_see_pieces() -> None:
    sizes: list[int] = []

    def load(data: bytes) -> Any:
        sizes.append(len(data))
        return orjson.loads(data)

    assert loads_with(load, LARGE) == orjson.loads(LARGE)
    assert max(sizes) < 2 * json_pieces.PIECE


@given(value=VALUES)
def test_encoding_in_parts_gives_the_same_bytes(value: Any) -> None:
    assert json_pieces.dumps(value) == orjson.dumps(value)
    many = {"spec": {"containers": [value] * 200}, "data": {f"k{i}": value for i in range(200)}}
    assert json_pieces.dumps(many) == orjson.dumps(many)


def test_no_call_encodes_much(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def recording(value: Any) -> bytes:
        encoded = orjson.dumps(value)
        sizes.append(len(encoded))
        return encoded

    monkeypatch.setattr(json_pieces, "orjson", SimpleNamespace(dumps=recording))
    json_pieces.dumps({"spec": {"template": {"spec": {"containers": [{"name": f"c{i}"} for i in range(50_000)]}}}})
    assert max(sizes) < 4096


def test_a_document_that_nests_too_deeply_is_rejected_before_it_is_decoded(decoded_sizes: list[int]) -> None:
    data = b'{"u":[%b]}' % b",".join([b'{"a":' * 500 + b"1" + b"}" * 500] * 1000)
    with pytest.raises(NotInPiecesError):
        loads(data)
    with pytest.raises(DecodeError, match="exceeded max depth"):
        json_serializer.decode(data)
    assert not decoded_sizes
