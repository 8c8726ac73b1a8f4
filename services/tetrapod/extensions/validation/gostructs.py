"""Conversion of versions and schemas to the JSON form of upstream's internal Go structs, for errors that quote a whole value.

Upstream: apiextensions-apiserver/pkg/apis/apiextensions (types.go, types_jsonschema.go), whose structs have no JSON tags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tetrapod.machinery.gvk import Object

_FIELDS: Final[Mapping[str, tuple[str, Any]]] = {
    "ID": ("id", ""),
    "Schema": ("$schema", ""),
    "Ref": ("$ref", None),
    "Description": ("description", ""),
    "Type": ("type", ""),
    "Nullable": ("nullable", False),
    "Format": ("format", ""),
    "Title": ("title", ""),
    "Default": ("default", None),
    "Maximum": ("maximum", None),
    "ExclusiveMaximum": ("exclusiveMaximum", False),
    "Minimum": ("minimum", None),
    "ExclusiveMinimum": ("exclusiveMinimum", False),
    "MaxLength": ("maxLength", None),
    "MinLength": ("minLength", None),
    "Pattern": ("pattern", ""),
    "MaxItems": ("maxItems", None),
    "MinItems": ("minItems", None),
    "UniqueItems": ("uniqueItems", False),
    "MultipleOf": ("multipleOf", None),
    "Enum": ("enum", None),
    "MaxProperties": ("maxProperties", None),
    "MinProperties": ("minProperties", None),
    "Required": ("required", None),
    "Items": ("items", None),
    "AllOf": ("allOf", None),
    "OneOf": ("oneOf", None),
    "AnyOf": ("anyOf", None),
    "Not": ("not", None),
    "Properties": ("properties", None),
    "AdditionalProperties": ("additionalProperties", None),
    "PatternProperties": ("patternProperties", None),
    "Dependencies": ("dependencies", None),
    "AdditionalItems": ("additionalItems", None),
    "Definitions": ("definitions", None),
    "ExternalDocs": ("externalDocs", None),
    "Example": ("example", None),
    "XPreserveUnknownFields": ("x-kubernetes-preserve-unknown-fields", None),
    "XEmbeddedResource": ("x-kubernetes-embedded-resource", False),
    "XIntOrString": ("x-kubernetes-int-or-string", False),
    "XListMapKeys": ("x-kubernetes-list-map-keys", None),
    "XListType": ("x-kubernetes-list-type", None),
    "XMapType": ("x-kubernetes-map-type", None),
    "XValidations": ("x-kubernetes-validations", None),
}


_ZEROS: Final = dict(_FIELDS.values())


def is_set(key: str, value: Any) -> bool:
    """Return whether a field of a schema differs from the zero value of its Go type. For pointers only null is the zero value."""
    return value is not None and (_ZEROS.get(key, "") is None or bool(value))


def schema_struct(schema: Object) -> Object:
    """Return a schema in the form of the Go struct JSONSchemaProps."""
    struct: Object = {}
    for name, (key, zero) in _FIELDS.items():
        value = schema.get(key)
        struct[name] = zero if value is None else _NESTED[name](value) if name in _NESTED else value
    return struct


def rule_struct(rule: Object) -> Object:
    """Return a CEL rule in the form of the Go struct ValidationRule."""
    texts = {
        name: rule.get(key) or "" for name, key in (("Rule", "rule"), ("Message", "message"), ("MessageExpression", "messageExpression"))
    }
    other_fields = {"Reason": rule.get("reason"), "FieldPath": rule.get("fieldPath") or "", "OptionalOldSelf": rule.get("optionalOldSelf")}
    return texts | other_fields


def subresources_struct(subresources: Object | None) -> Object | None:
    """Return the subresources of a version in the form of the Go struct."""
    if subresources is None:
        return None
    scale = subresources.get("scale")
    keys = (
        ("SpecReplicasPath", "specReplicasPath", ""),
        ("StatusReplicasPath", "statusReplicasPath", ""),
        ("LabelSelectorPath", "labelSelectorPath", None),
    )
    return {
        "Status": None if subresources.get("status") is None else {},
        "Scale": None if scale is None else {name: scale.get(key, zero) for name, key, zero in keys},
    }


def column_struct(column: Object) -> Object:
    """Return a printer column in the form of the Go struct."""
    keys = (("Name", "name"), ("Type", "type"), ("Format", "format"), ("Description", "description"))
    texts = {name: column.get(key) or "" for name, key in keys}
    return {**texts, "Priority": column.get("priority") or 0, "JSONPath": column.get("jsonPath") or ""}


def _schemas(schemas: list[Object]) -> list[Object]:
    return [schema_struct(s or {}) for s in schemas]


def _map(schemas: dict[str, Object]) -> dict[str, Object]:
    return {name: schema_struct(schemas[name]) for name in sorted(schemas)}


def _or_list(value: Any) -> Object:
    if isinstance(value, list):
        return {"Schema": None, "JSONSchemas": _schemas(value)}
    return {"Schema": schema_struct(value), "JSONSchemas": None}


def _or_bool(value: Any) -> Object:
    if isinstance(value, dict):
        return {"Allows": True, "Schema": schema_struct(value)}
    return {"Allows": bool(value), "Schema": None}


def _dependencies(value: dict[str, Any]) -> Object:
    return {name: _dependency(value[name]) for name in sorted(value)}


def _dependency(value: Any) -> Object:
    return {
        "Schema": schema_struct(value) if isinstance(value, dict) else None,
        "Property": value if isinstance(value, list) else None,
    }


def _docs(value: Object) -> Object:
    return {"Description": value.get("description") or "", "URL": value.get("url") or ""}


_NESTED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "Items": _or_list,
    "AllOf": _schemas,
    "OneOf": _schemas,
    "AnyOf": _schemas,
    "Not": schema_struct,
    "Properties": _map,
    "AdditionalProperties": _or_bool,
    "PatternProperties": _map,
    "Dependencies": _dependencies,
    "AdditionalItems": _or_bool,
    "Definitions": _map,
    "ExternalDocs": _docs,
    "XValidations": lambda value: [rule_struct(rule) for rule in value],
}
