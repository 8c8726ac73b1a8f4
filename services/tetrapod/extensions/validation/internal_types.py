"""The internal Go types of CustomResourceDefinitions that upstream prints whole in error messages.

They are those of columns, subresources, rules and schemas.

Upstream: apiextensions-apiserver/pkg/apis/apiextensions (types.go, types_jsonschema.go), whose structs have no JSON
tags.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.go_structs import StructTypes
from tetrapod.machinery.gvk import Object

_TYPES: Final = {
    "Schema": (
        "ID Schema Ref:ptr Description Type Nullable:bool Format Title Default:wire Maximum:ptr ExclusiveMaximum:bool"
        " Minimum:ptr ExclusiveMinimum:bool MaxLength:ptr MinLength:ptr Pattern MaxItems:ptr MinItems:ptr"
        " UniqueItems:bool MultipleOf:ptr Enum:list MaxProperties:ptr MinProperties:ptr Required:list"
        " Items:schema-or-list AllOf[]Schema OneOf[]Schema AnyOf[]Schema Not*Schema Properties:schemas"
        " AdditionalProperties:schema-or-bool PatternProperties:schemas Dependencies:dependencies"
        " AdditionalItems:schema-or-bool Definitions:schemas ExternalDocs*Documentation Example:wire"
        " XPreserveUnknownFields:ptr XEmbeddedResource:bool XIntOrString:bool XListMapKeys:list XListType:ptr"
        " XMapType:ptr XValidations[]Rule"
    ),
    "Documentation": "Description URL",
    "Rule": "Rule Message MessageExpression Reason:ptr FieldPath OptionalOldSelf:ptr",
    "Subresources": "Status*StatusSubresource Scale*ScaleSubresource",
    "StatusSubresource": "",
    "ScaleSubresource": "SpecReplicasPath StatusReplicasPath LabelSelectorPath:ptr",
    "Column": "Name Type Format Description Priority:int JSONPath",
}

_KEYS: Final = {
    "Schema": "$schema",
    "Ref": "$ref",
    "XPreserveUnknownFields": "x-kubernetes-preserve-unknown-fields",
    "XEmbeddedResource": "x-kubernetes-embedded-resource",
    "XIntOrString": "x-kubernetes-int-or-string",
    "XListMapKeys": "x-kubernetes-list-map-keys",
    "XListType": "x-kubernetes-list-type",
    "XMapType": "x-kubernetes-map-type",
    "XValidations": "x-kubernetes-validations",
}


def schema_struct(schema: Object) -> Object:
    """Return a schema as Go prints upstream's internal struct JSONSchemaProps, for error messages."""
    return INTERNAL_TYPES.struct("Schema", schema)


def rule_struct(rule: Object) -> Object:
    """Return a CEL rule as Go prints upstream's internal struct ValidationRule, for error messages."""
    return INTERNAL_TYPES.struct("Rule", rule)


def is_set(key: str, value: Any) -> bool:
    """Return whether a value of the schema field `key` differs from the zero value of the field's Go type.

    For a pointer, only null is the zero value. Otherwise "", 0, false and empty lists and objects are zero values too.
    """
    return value is not None and (_ZEROES.get(key, "") is None or bool(value))


def _schemas(schemas: dict[str, Object]) -> dict[str, Object]:
    return {name: schema_struct(schemas[name]) for name in sorted(schemas)}


def _schema_or_list(value: Any) -> Object:
    if isinstance(value, list):
        return {"Schema": None, "JSONSchemas": INTERNAL_TYPES.structs("Schema", value)}
    return {"Schema": schema_struct(value), "JSONSchemas": None}


def _schema_or_bool(value: Any) -> Object:
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


INTERNAL_TYPES: Final = StructTypes(
    _TYPES,
    _KEYS,
    {
        "schemas": _schemas,
        "schema-or-list": _schema_or_list,
        "schema-or-bool": _schema_or_bool,
        "dependencies": _dependencies,
    },
)
_ZEROES: Final = {field.key: field.zero for field in INTERNAL_TYPES.fields("Schema")}
