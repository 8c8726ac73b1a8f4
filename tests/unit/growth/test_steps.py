"""Tests that long documents are decoded in small steps: a function of C that visits every element keeps all other
threads waiting.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from tetrapod.core.v1 import config_maps
from tetrapod.generic.endpoints.representation import Representation
from tetrapod.generic.http.negotiation.accept import JSON, YAML, Accepted
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.machinery import field_selectors, freeing, labels
from tetrapod.machinery.labels import parser
from tetrapod.machinery.serializer import json

_MANY = 2_000


def python_calls(operation: Callable[[], object]) -> int:
    """Return how many Python functions are called: before each of them the interpreter lets other threads run."""
    calls = 0

    def count(frame: types.FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"a":[' + b",".join([b"1.0e3"] * _MANY) + b"]}", id="floats"),
    ],
)
def test_a_document_that_json_cannot_repeat_is_decoded_in_small_steps(data: bytes) -> None:
    assert python_calls(lambda: json.decode(data)) >= _MANY


def test_a_document_whose_errors_are_listed_is_decoded_in_small_steps() -> None:
    data = b'{"a":[' + b",".join([b"{}"] * _MANY) + b"]}"
    assert python_calls(lambda: json.pairs(data)) >= _MANY


@pytest.mark.parametrize(
    ("text", "message", "most"),
    [
        pytest.param("a" + " \t\r\n" * 200_000 + "b", "found 'b'", 1000, id="white space"),
        pytest.param("=" * 800_000, "found '=='", 1000, id="equals signs"),
        pytest.param("a in (" + "(" * 800_000, r"found '\('", 1000, id="parentheses"),
    ],
)
def test_a_label_selector_is_scanned_in_small_steps_up_to_its_first_error(
    monkeypatch: pytest.MonkeyPatch, text: str, message: str, most: int
) -> None:
    lengths: list[int] = []
    matches = parser._tokens

    def counted(text: str) -> Iterator[re.Match[str]]:
        for match in matches(text):
            lengths.append(len(match[0]))
            yield match

    monkeypatch.setattr(parser, "_tokens", counted)
    with pytest.raises(ValueError, match=message):
        labels.parse(text)
    assert max(lengths) <= 4096
    assert len(lengths) <= most


def test_escapes_of_a_field_selector_are_decoded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    escapes: list[str] = []
    matches = field_selectors._escapes

    def counted(text: str) -> Iterator[re.Match[str]]:
        for match in matches(text):
            escapes.append(match[0])
            yield match

    monkeypatch.setattr(field_selectors, "_escapes", counted)
    (term,) = field_selectors.parse("metadata.name=" + r"\,\=\\x" * _MANY).requirements
    assert term.value == r",=\x" * _MANY
    assert len(escapes) == 3 * _MANY


@pytest.mark.parametrize("accepted", [Accepted(YAML), Accepted(JSON, pretty=True)])
async def test_a_large_object_that_is_converted_for_its_response_is_freed_in_parts(
    accepted: Accepted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Freed at once, its million texts kept all threads waiting for a tenth of a second."""
    freed: list[int] = []
    free = freeing.free_members

    def free_members(container: Any) -> None:
        freed.append(len(container))
        free(container)

    monkeypatch.setattr(freeing, "free_members", free_members)
    data = {f"k{i}": "v" for i in range(_MANY)}
    obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": data}
    entry = StoredEntry.from_served("n/a", orjson.dumps(obj), 1)
    response = await Representation(config_maps.definition(), "v1").entry(entry, accepted)
    assert response.body.count(b"\n") >= _MANY
    assert freed.count(_MANY) == 1
