"""Conversion of the openAPIV3Schema of a CRD version to a `SchemaNode`.

It ignores unknown and invalid keywords; structural_rules.py checks whether a schema is structural. Nodes below are
built on first access.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema (convert.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode

VALUE_KEYWORDS: Final = (
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "multipleOf",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxProperties",
    "minProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "x-kubernetes-validations",
)
_ATTRIBUTES: Final = tuple(name for name in SchemaNode.__slots__ if name != "compiled")


def build(schema: Mapping[str, Any]) -> SchemaNode:
    """Return the node of a schema, a new one at each call. It keeps `schema`, which must not be changed afterwards."""
    return _Lazy(schema)


class _Lazy(SchemaNode):
    """A node that converts its schema when one of its attributes is first accessed.

    Args:
        schema: the schema, which must not be changed afterwards.
    """

    __slots__ = ("_schema",)
    _schema: Mapping[str, Any]

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self.compiled = {}

    def __getattr__(self, name: str) -> Any:
        if name not in _ATTRIBUTES:
            raise AttributeError(name)
        _fill(self, self._schema)
        return getattr(self, name)


def _fill(node: SchemaNode, schema: Mapping[str, Any]) -> None:
    SchemaNode.__init__(node, schema.get("type") or "")
    node.format = schema.get("format") or ""
    node.nullable = bool(schema.get("nullable"))
    node.default = NO_DEFAULT if schema.get("default") is None else schema["default"]
    node.required = tuple(schema.get("required") or ())
    if schema.get("enum"):
        node.enum = tuple(schema["enum"])
    if schema.get("properties"):
        node.properties = {name: build(child) for name, child in schema["properties"].items()}
    if isinstance(schema.get("items"), dict):
        node.items = build(schema["items"])
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        node.additional_properties = build(additional)
    elif additional:
        node.additional_properties = SchemaNode()
    node.int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    node.preserve_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    node.embedded_resource = bool(schema.get("x-kubernetes-embedded-resource"))
    node.list_type = schema.get("x-kubernetes-list-type") or ""
    node.list_map_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    node.map_type = schema.get("x-kubernetes-map-type") or ""
    node.validations = {key: schema[key] for key in VALUE_KEYWORDS if schema.get(key) not in (None, "", [])}
