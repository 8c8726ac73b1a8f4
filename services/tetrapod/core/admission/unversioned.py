"""Configuration of the time before versions, as sigs.k8s.io/yaml puts it into a Go struct: fields' names in any case, and what is a string
may be written as a number.
"""

from __future__ import annotations

from typing import Any

from tetrapod.generic.configuration.loading import check
from tetrapod.machinery.gofloat import go_float
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer import json, yaml
from tetrapod.machinery.shapes.node import SchemaNode


def read_unversioned(data: bytes, shape: SchemaNode) -> Object:
    """Of several documents the first.

    Raises:
        ValueError: no YAML, or values of wrong types.
    """
    is_json = data.lstrip().startswith(b"{")
    found: Any = (json if is_json else yaml).decode(data).obj
    if not isinstance(found, dict):
        raise ValueError("json: cannot unmarshal into Go value of a struct")
    config: Object = _as(shape, found)
    check(config, shape, None, [], strict=False)
    return config


def _as(shape: SchemaNode, value: Any) -> Any:
    if shape.type == "string":
        return _text(value)
    if not isinstance(value, dict):
        return value
    if shape.additional_properties is not None:
        return {key: _as(shape.additional_properties, one) for key, one in value.items()}
    known = {name.lower(): name for name in shape.properties}
    named = {known.get(key.lower(), key): one for key, one in value.items()}
    return {key: _as(shape.properties[key], one) if key in shape.properties else one for key, one in named.items()}


def _text(value: Any) -> Any:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return go_float(value)
    return value
