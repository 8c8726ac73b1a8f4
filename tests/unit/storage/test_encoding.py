"""Tests of the stored and served bytes of objects."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.storage.encoding import CorruptObject, encode, respliced, splice

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.fixed_dictionaries(
    {"kind": st.just("Pod"), "apiVersion": st.just("v1")},
    optional={
        "metadata": st.dictionaries(st.sampled_from(["name", "labels", "resourceVersion", "é"]), JSON),
        "metadataX": JSON,
        "spec": JSON,
    },
)


@given(OBJECTS, st.integers(1, 1 << 62), st.integers(1, 1 << 62))
def test_the_revision_is_spliced_in_and_nothing_else_changes(obj: dict[str, Any], revision: int, later: int) -> None:
    shuffled = dict(reversed(obj.items()))
    stored = encode(shuffled, "v1", "Pod")
    assert stored.startswith(b'{"kind":"Pod","apiVersion":"v1","metadata":{')
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name != "resourceVersion"}
    assert orjson.loads(stored) == {**obj, "metadata": metadata}
    raw = splice(stored, revision)
    assert orjson.loads(raw) == {**obj, "metadata": {**metadata, "resourceVersion": str(revision)}}
    assert respliced(raw, revision, later) == splice(stored, later)


def test_encoding_leaves_the_object_as_it_is() -> None:
    obj = {"metadata": {"name": "a", "resourceVersion": "5"}}
    assert encode(obj, "v1", "Pod") == b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}'
    assert obj == {"metadata": {"name": "a", "resourceVersion": "5"}}


@pytest.mark.parametrize(
    "stored", [b"", b"k8s\x00\n\x0c", b"[1]", b"null", b'{"kind":', b'{"kind":"Pod","metadata":7}']
)
def test_values_that_are_not_objects_are_reported_as_corrupt(stored: bytes) -> None:
    with pytest.raises(CorruptObject):
        splice(stored, 1)
