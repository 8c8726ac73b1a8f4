"""Tests that long documents are decoded in small steps: a function of C that visits every element keeps all other
threads waiting.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

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
