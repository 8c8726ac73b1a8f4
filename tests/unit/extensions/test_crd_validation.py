"""Tests of CustomResourceDefinition validation: upstream's errors, in its order and with its field paths."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.extensions.definitions.strategy import set_defaults
from tetrapod.extensions.validation.definition import validate_create, validate_status_update, validate_update
from tetrapod.machinery.gvk import Object


def crd(*schemas: Object, **more: Any) -> Object:
    versions = [
        {"name": f"v{i}", "served": True, "storage": i == 1, "schema": {"openAPIV3Schema": schema}}
        for i, schema in enumerate(schemas, 1)
    ]
    obj = {
        "metadata": {"name": "widgets.example.com", **more.pop("metadata", {})},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": versions,
            **more,
        },
        "status": {"storedVersions": ["v1"]},
    }
    set_defaults(obj)
    return obj


def of_property(schema: Object) -> Object:
    return {"type": "object", "properties": {"a": schema}}


def errors(obj: Object) -> list[str]:
    return [str(error) for error in validate_create(obj)]


A = "spec.validation.openAPIV3Schema.properties[a]"
MISSING = "error parsing regexp: missing closing ): `(`"


def test_a_plain_definition_is_accepted() -> None:
    assert errors(crd({"type": "object"})) == []


def test_a_definition_is_named_after_its_plural_and_group() -> None:
    obj = crd({"type": "object"}, metadata={"name": "gadgets.example.com"})
    assert errors(obj) == [
        'metadata.name: Invalid value: "gadgets.example.com": must be spec.names.plural+"."+spec.group'
    ]


def test_one_version_s_schema_is_at_the_top_several_are_in_their_versions() -> None:
    bad = {"type": "object", "properties": {"a": {}}}
    text = "Required value: must not be empty for specified object fields"
    assert errors(crd(bad)) == [f"{A}.type: {text}"]
    assert errors(crd(bad, bad)) == [f"{A}.type: {text}"]
    assert errors(crd({"type": "object"}, bad)) == [
        f"spec.versions[1].schema.openAPIV3Schema.properties[a].type: {text}"
    ]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "array"}, [f"{A}.items: Required value: must be specified"]),
        (
            {"type": "string", "pattern": "("},
            [f'{A}.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: {MISSING}'],
        ),
        (
            {"type": "object", "allOf": [{"properties": {"b": {"type": "string"}}}]},
            [f"{A}.allOf[0].properties[b].type: Forbidden: must be empty to be structural"],
        ),
        (
            {"type": "integer", "default": "x"},
            [f'{A}.default: Invalid value: "string":  in body must be of type integer: "string"'],
        ),
        (
            {"type": "object", "default": {"b": 1}},
            [f'{A}.default: Invalid value: {{"b":1}}: must not have unknown fields'],
        ),
        (
            {
                "type": "array",
                "items": {"type": "object"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            [f'{A}.x-kubernetes-list-map-keys: Invalid value: ["k"]: entries must all be names of item properties'],
        ),
        ({"type": "string", "x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": False}, None),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, []),
    ],
)
def test_invalid_schemas_are_rejected(schema: Object, expected: list[str] | None) -> None:
    found = errors(crd(of_property(schema)))
    if expected is None:
        assert found == [f"{A}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"]
    else:
        assert found == expected


def test_fields_of_value_validations_must_be_declared_in_the_structure() -> None:
    root = "spec.validation.openAPIV3Schema"
    assert errors(crd({"type": "object", "anyOf": [{"properties": {"b": {"maxLength": 1}}}]})) == [
        f"{root}.properties[b]: Required value: because it is defined in {root}.anyOf[0].properties[b]"
    ]


def test_metadata_can_restrict_names_only() -> None:
    metadata = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}
    assert errors(crd({"type": "object", "properties": {"metadata": metadata}})) == []
    metadata = {"type": "object", "properties": {"labels": {"type": "object"}}}
    text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
    assert errors(crd({"type": "object", "properties": {"metadata": metadata}})) == [
        f"spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: {text}"
    ]


@pytest.mark.parametrize(
    "more", [{"anyOf": [{}]}, {"not": {}}, {"default": {}}, {"$ref": ""}, {"x-kubernetes-map-type": "atomic"}]
)
def test_root_fields_are_limited_with_a_status_subresource(more: Object) -> None:
    obj = crd({"type": "object", **more})
    obj["spec"]["versions"][0]["subresources"] = {"status": {}}
    assert "fields are allowed at the root of the schema if the status subresource is enabled" in errors(obj)[0]


def test_a_value_validation_may_say_nothing_of_documents_and_no_more_properties() -> None:
    assert (
        errors(crd({"type": "object", "allOf": [{"externalDocs": {"url": "x"}, "additionalProperties": False}]})) == []
    )


def test_community_groups_need_an_approval() -> None:
    obj = crd({"type": "object"}, metadata={"name": "widgets.sigs.k8s.io"}, group="sigs.k8s.io")
    [error] = errors(obj)
    assert error.startswith(
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have"
    )
    for approval in ("https://github.com/kubernetes/kubernetes/pull/1", "unapproved, experimental-only"):
        obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": approval}
        assert errors(obj) == []
    obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": "yes"}
    assert "Invalid value" in errors(obj)[0]


def test_an_established_definition_keeps_scope_and_kind() -> None:
    old, new = crd({"type": "object"}), crd({"type": "object"}, scope="Cluster")
    assert validate_update(new, old) == []
    old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    assert [str(e) for e in validate_update(new, old)] == ['spec.scope: Invalid value: "Cluster": field is immutable']


def test_an_update_may_keep_values_that_are_invalid_now() -> None:
    keyed = {
        "type": "array",
        "items": {"type": "object", "properties": {"k": {"type": "string"}}},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    old = crd(of_property(keyed))
    assert errors(old) != []
    assert validate_update(crd(of_property({**keyed, "description": "lists"})), old) == []


def test_a_stored_version_cannot_be_removed() -> None:
    old, new = crd({"type": "object"}, {"type": "object"}), crd({"type": "object"})
    new["status"]["storedVersions"] = ["v1", "v2"]
    [error] = validate_update(new, old)
    assert (error.field, error.value) == ("status.storedVersions[1]", "v2")


def test_status_may_name_any_stored_versions() -> None:
    obj = crd({"type": "object"})
    obj["status"] = {"storedVersions": ["v9"], "acceptedNames": {"plural": "x", "kind": "X"}}
    assert validate_status_update(obj, obj) == []


def test_without_stored_versions_the_storage_version_is_meant() -> None:
    obj = crd({"type": "object"})
    obj["status"] = {"storedVersions": []}
    set_defaults(obj)
    assert obj["status"]["storedVersions"] == ["v1"]


def test_whole_versions_are_shown_as_gos_structs() -> None:
    obj = crd({"type": "object"}, {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}})
    obj["spec"]["versions"][1]["name"] = "v1"
    [text] = [t for t in errors(obj) if "unique" in t]
    assert text.startswith(
        'spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,'
    )
    assert (
        '"Schema":{"OpenAPIV3Schema":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,'
        in text
    )
    assert '"Properties":{"a":{"ID":"",' in text
    assert '"MaxLength":3,"MinLength":null,' in text
    assert text.endswith("must contain unique version names")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"dependencies": {"b": None}}, f"{A}.dependencies: Forbidden: dependencies is not supported"),
        ({"dependencies": {"b": ["c"]}}, f"{A}.dependencies: Forbidden: dependencies is not supported"),
        ({"items": [None]}, f"{A}.items: Forbidden: items must be a schema object and not an array"),
    ],
)
def test_null_in_a_schema_is_an_error_and_no_crash(given: Object, error: str) -> None:
    assert errors(crd(of_property({"type": "object", **given}))) == [error]
