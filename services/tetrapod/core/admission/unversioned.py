"""Decoding of configuration files without apiVersion, as sigs.k8s.io/yaml decodes YAML into a Go struct.

Field names match in any case, and strings may be written as numbers or booleans.
"""

from __future__ import annotations

from typing import Any

from tetrapod.generic.configuration.loading import check
from tetrapod.machinery.golang.floats import go_float
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import json, yaml


def read_unversioned(data: bytes, shape: SchemaNode) -> Object:
    """Decode the first document of a JSON or YAML file and check it against a schema.

    Unknown fields are allowed.

    Args:
        data: the content of the file.
        shape: the schema of the document.

    Raises:
        ValueError: the data is neither JSON nor YAML, is not a mapping, or has a value of the wrong type.
    """
    is_json = data.lstrip().startswith(b"{")
    decoded: Any = (json if is_json else yaml).decode(data).obj
    if not isinstance(decoded, dict):
        raise ValueError("json: cannot unmarshal into Go value of a struct")
    config: Object = _as(shape, decoded)
    check(config, shape, None, [], strict=False)
    return config


def _as(shape: SchemaNode, value: Any) -> Any:
    """Return a copy of the value with field names as the schema spells them and numbers converted to text where needed.

    The file may spell field names in any case. Numbers and booleans become strings where the schema has strings.

    Args:
        shape: the schema.
        value: the decoded value.
    """
    if shape.type == "string":
        return _text(value)
    if not isinstance(value, dict):
        return value
    if shape.additional_properties is not None:
        return {key: _as(shape.additional_properties, item) for key, item in value.items()}
    canonical_names = {name.lower(): name for name in shape.properties}
    members = {canonical_names.get(key.lower(), key): item for key, item in value.items()}
    return {key: _as(shape.properties[key], item) if key in shape.properties else item for key, item in members.items()}


def _text(value: Any) -> Any:
    """Return a bool or number as the string that Go would decode; return other values unchanged."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return go_float(value)
    return value
