"""Tests of the fields of the type RawExtension: which ones there are, and where their texts are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tetrapod.machinery.gvk import GroupKind
from tetrapod.machinery.raw_extensions import (
    RAW_EXTENSIONS,
    beside_fields,
    forget_texts,
    into_fields,
    may_have_texts,
    raw_paths,
)
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer.raw_json import EACH, RawPath, Verbatim, verbatim
from tetrapod.machinery.types import schema_for
from tetrapod.machinery.types.resources import groups, resource_facts

PATHS = raw_paths("resource.k8s.io", "ResourceClaim")


def raw_extensions(node: SchemaNode | None, path: RawPath = (), above: tuple[str, ...] = ()) -> Iterator[RawPath]:
    """Yield the paths of the RawExtensions in a schema, without those within recursive types."""
    if node is None or (node.definition and node.definition in above):
        return
    if node.definition.endswith(".RawExtension"):
        yield path
        return
    above = (*above, node.definition)
    for name, child in node.properties.items():
        yield from raw_extensions(child, (*path, name), above)
    yield from raw_extensions(node.items, (*path, EACH), above)


def test_every_field_of_every_stored_kind_is_known() -> None:
    found: dict[GroupKind, set[tuple[RawPath, ...]]] = {}
    for group in groups():
        for version in (*group.versions, *group.optional):
            for facts in resource_facts(group.name, version):
                if paths := tuple(sorted(raw_extensions(schema_for(facts.kind)))):
                    found.setdefault(GroupKind(facts.kind.group, facts.kind.kind), set()).add(paths)
    assert found == {kind: {tuple(sorted(paths))} for kind, paths in RAW_EXTENSIONS.items()}


def claim() -> dict[str, Any]:
    config = [{"opaque": {"parameters": verbatim({"a": 1}, '{"a": 1}')}}, {"opaque": {"parameters": {"b": 2}}}, {}]
    return {"spec": {"devices": {"config": config}}, "status": {"devices": [{"data": verbatim({}, "{ }")}]}}


def test_texts_are_stored_beside_the_fields_and_removed_when_they_are_read() -> None:
    obj = claim()
    stored = orjson.loads(orjson.dumps(beside_fields(obj, PATHS)))
    assert stored["spec"]["devices"]["config"][0] == {"opaque": {"parameters": {"a": 1}, "parametersText": '{"a": 1}'}}
    assert stored["status"] == {"devices": [{"data": {}, "dataText": "{ }"}]}
    assert obj == claim()
    assert may_have_texts(orjson.dumps(stored), PATHS)
    assert into_fields(stored, PATHS)
    assert stored == obj
    assert isinstance(stored["status"]["devices"][0]["data"], Verbatim)
    forget_texts(stored, PATHS)
    assert stored == orjson.loads(orjson.dumps(obj))
    assert not into_fields(stored, PATHS)
    assert beside_fields(stored, PATHS) is stored


@pytest.mark.parametrize("obj", [{}, {"spec": None, "status": {"devices": None}}, {"status": {"devices": [None, {}]}}])
def test_an_object_without_the_fields_is_stored_as_it_is(obj: dict[str, Any]) -> None:
    assert beside_fields(obj, PATHS) is obj
    assert not into_fields(obj, PATHS)
    assert not may_have_texts(orjson.dumps(obj), PATHS)
