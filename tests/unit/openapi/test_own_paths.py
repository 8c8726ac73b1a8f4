"""Tests of `own_paths`: the schemas that only paths of other group-versions use are left out."""

from __future__ import annotations

from typing import Any

from tetrapod.generic.openapi.own_paths import own_paths


def reference(name: str) -> Any:
    return {"$ref": f"#/components/schemas/{name}"}


def test_schemas_of_other_paths_are_left_out_at_any_depth() -> None:
    deep: Any = {"items": reference("Inner")}
    for _ in range(900):
        deep = {"items": deep}
    document = {
        "paths": {"/apis/a/v1/": {"get": reference("Own")}, "/apis/b/v1/": {"get": [reference("Other")]}},
        "components": {"schemas": {"Own": {"anyOf": [deep]}, "Inner": {}, "Other": {}}},
    }
    own = own_paths("apis/a/v1", document)
    assert list(own["paths"]) == ["/apis/a/v1/"]
    assert sorted(own["components"]["schemas"]) == ["Inner", "Own"]
