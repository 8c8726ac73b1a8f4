"""Tables and partial metadata have upstream's shape, nulls included."""

from __future__ import annotations

from tetrapod.machinery import table

OBJECT = {"kind": "LimitRange", "apiVersion": "v1", "metadata": {"name": "l", "creationTimestamp": "t", "resourceVersion": "5"}, "spec": {}}


def test_a_kind_without_columns_has_name_and_created_at() -> None:
    made = table.table_of_object(OBJECT, None)
    assert [(c["name"], c["type"], c["format"], c["priority"]) for c in made["columnDefinitions"]] == [
        ("Name", "string", "name", 0),
        ("Created At", "date", "", 0),
    ]
    assert made["metadata"] == {"resourceVersion": "5"}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": OBJECT["metadata"]}
    assert made["rows"] == [{"cells": ["l", "t"], "object": partial}]


def test_what_a_row_includes() -> None:
    assert table.row(OBJECT, None, "Object")["object"] is OBJECT
    assert table.row(OBJECT, None, "None")["object"] is None
    assert table.row(OBJECT, None, "Metadata", "meta.k8s.io/v1beta1")["object"]["apiVersion"] == "meta.k8s.io/v1beta1"
    assert [str(e) for e in table.validate_include_object("Everything")] == [
        "includeObject: Invalid value: \"Everything\": must be 'Metadata', 'Object', 'None', or empty"
    ]


def test_nothing_is_null() -> None:
    made = table.table([], None, headers=False)
    assert made["rows"] is None
    assert made["columnDefinitions"] is None
    assert table.partial_object_metadata_list([])["items"] is None
