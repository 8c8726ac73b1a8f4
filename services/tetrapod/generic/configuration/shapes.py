"""Shapes of configuration files' kinds, as the schema nodes that `machinery.schema.decode` decodes by.

    ISSUER = struct("v1.Issuer", url=STRING(), audiences=strings())

Names are Go's, since they show in refusals: `json: cannot unmarshal number into Go struct field Issuer.jwt.issuer.url of type string`.
"""

from __future__ import annotations

from tetrapod.machinery.shapes.node import SchemaNode

POINTER = "*"
"""The presence of a field that is kept as it was given, empty or not."""


def struct(name: str, /, **fields: SchemaNode) -> SchemaNode:
    node = SchemaNode("object")
    node.definition = name
    node.properties = fields
    return node


def kind(name: str, /, **fields: SchemaNode) -> SchemaNode:
    """A struct with apiVersion and kind."""
    return struct(name, apiVersion=string(), kind=string(), **fields)


def string(presence: str = "") -> SchemaNode:
    return _scalar("string", presence)


def boolean(presence: str = "") -> SchemaNode:
    return _scalar("boolean", presence)


def integer(format_: str) -> SchemaNode:
    """int32, int64 or time.Duration."""
    node = _scalar("integer", "")
    node.format = format_
    return node


def base64_bytes() -> SchemaNode:
    """A []byte."""
    node = _scalar("string", "")
    node.format = "byte"
    return node


def duration() -> SchemaNode:
    """metav1.Duration: kept as text, which Go can parse."""
    node = _scalar("string", "")
    node.definition = "v1.Duration"
    return node


def list_of(items: SchemaNode) -> SchemaNode:
    node = SchemaNode("array")
    node.items = items
    return node


def map_of(values: SchemaNode) -> SchemaNode:
    node = SchemaNode("object")
    node.additional_properties = values
    return node


def strings() -> SchemaNode:
    return list_of(string())


def raw() -> SchemaNode:
    """Anything, looked at by somebody else (runtime.RawExtension)."""
    node = SchemaNode("object")
    node.definition = "runtime.RawExtension"
    node.preserve_unknown = True
    return node


def _scalar(type_: str, presence: str) -> SchemaNode:
    node = SchemaNode(type_)
    node.presence = presence
    return node
