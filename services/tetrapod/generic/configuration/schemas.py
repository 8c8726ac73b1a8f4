"""Constructors for schemas of configuration kinds, which `machinery.schema.decode` uses.

    ISSUER = struct("v1.Issuer", url=STRING(), audiences=strings())

Names are Go's, because errors contain them: `json: cannot unmarshal number into Go struct field Issuer.jwt.issuer.url
of type string`.
"""

from __future__ import annotations

from tetrapod.machinery.schema_node import SchemaNode

POINTER = "*"
"""The presence of a field that is kept as given, even if empty."""


def struct(name: str, /, **fields: SchemaNode) -> SchemaNode:
    """Return the schema of a Go struct with these fields. `name` is Go's, such as `v1.Issuer`."""
    node = SchemaNode("object")
    node.definition = name
    node.properties = fields
    return node


def kind(name: str, /, **fields: SchemaNode) -> SchemaNode:
    """Return the schema of a Go struct with the fields apiVersion and kind, followed by `fields`."""
    return struct(name, apiVersion=string(), kind=string(), **fields)


def string(presence: str = "") -> SchemaNode:
    """Return the schema of a string. With `presence` POINTER an empty string is kept, else it is removed."""
    return _scalar("string", presence)


def boolean(presence: str = "") -> SchemaNode:
    """Return the schema of a bool. With `presence` POINTER `false` is kept, else it is removed."""
    return _scalar("boolean", presence)


def integer(format_: str) -> SchemaNode:
    """Return the schema of an integer. `format_` is `int32`, `int64` or `time.Duration`."""
    node = _scalar("integer", "")
    node.format = format_
    return node


def base64_bytes() -> SchemaNode:
    """Return the schema of a []byte, which is a base64 string in the file."""
    node = _scalar("string", "")
    node.format = "byte"
    return node


def duration() -> SchemaNode:
    """Return the schema of a metav1.Duration such as `5m`. The decoded value is still the text."""
    node = _scalar("string", "")
    node.definition = "v1.Duration"
    return node


def list_of(items: SchemaNode) -> SchemaNode:
    """Return the schema of a list with `items` as the schema of each item."""
    node = SchemaNode("array")
    node.items = items
    return node


def map_of(values: SchemaNode) -> SchemaNode:
    """Return the schema of a map from strings to `values`."""
    node = SchemaNode("object")
    node.additional_properties = values
    return node


def strings() -> SchemaNode:
    """Return the schema of a list of strings."""
    return list_of(string())


def raw() -> SchemaNode:
    """Return the schema of a runtime.RawExtension: any object, kept as it is for the caller to decode."""
    node = SchemaNode("object")
    node.definition = "runtime.RawExtension"
    node.preserve_unknown = True
    return node


def pointer(node: SchemaNode) -> SchemaNode:
    """Change a schema to that of a Go pointer, and return it: the field is kept as given, even if empty."""
    node.presence = POINTER
    return node


def _scalar(type_: str, presence: str) -> SchemaNode:
    node = SchemaNode(type_)
    node.presence = presence
    return node
