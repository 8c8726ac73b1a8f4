"""Indented lists are encoded item by item, with the bytes that orjson gives for the whole list."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tetrapod.generic.http.negotiation.documents import encode_json


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "List", "items": []},
        {"kind": "List", "items": [{"a": 1}]},
        {"kind": "List", "metadata": {"x": []}, "items": [{"a": "[]\n}", "b": []}, {}, {"c": [{"d": None}]}]},
        {"items": [1, "a", [], [[2]]]},
        {"kind": "Status", "details": {"causes": [{}, {}]}},
        [{"a": 1}, {"b": 2}],
        {},
    ],
)
def test_an_indented_list_has_the_usual_bytes(document: Any) -> None:
    assert encode_json(document, pretty=True) == orjson.dumps(document, option=orjson.OPT_INDENT_2)
