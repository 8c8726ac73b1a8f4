"""The YAML texts of OpenAPI documents in protocol buffers."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.openapi.yaml_text import yaml_text

_TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")))
_SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXTS
_VALUES = st.recursive(_SCALARS, lambda below: st.lists(below) | st.dictionaries(_TEXTS, below), max_leaves=20)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("get", "get\n"),
        ("merge,retainKeys", "merge,retainKeys\n"),
        ("true", '"true"\n'),
        ({}, "{}\n"),
        (
            [{"fieldPath": "spec.color"}, {"fieldPath": "spec.size"}],
            "- fieldPath: spec.color\n- fieldPath: spec.size\n",
        ),
        (
            [{"group": "apps", "kind": "Deployment", "version": "v1"}],
            "- group: apps\n  kind: Deployment\n  version: v1\n",
        ),
        (
            [{"a": [1, {"b": None}], "c": {"d": [[True]]}}],
            "- a:\n    - 1\n    - b: null\n  c:\n    d:\n        - - true\n",
        ),
    ],
)
def test_values_are_written_in_block_style(value: Any, text: str) -> None:
    assert yaml_text(value) == text


@given(_VALUES)
def test_every_value_is_read_back_from_its_text(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == value
