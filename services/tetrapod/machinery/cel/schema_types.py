"""The declared types of schemas.

`declared` returns the `DeclType` of a `SchemaNode`; `with_meta` adds the metadata fields that rules of a resource can
always use.

Upstream: k8s.io/apiserver/pkg/cel/common/schemas.go and apiextensions-apiserver/pkg/apiserver/schema/cel/model.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.declarations import BOOL, DOUBLE, INT, STRING, DeclType, list_decl, map_decl, object_decl
from tetrapod.machinery.cel.escaping import escape
from tetrapod.machinery.cel.limits import MAX_REQUEST_SIZE
from tetrapod.machinery.schema_node import NO_DEFAULT, SchemaNode

_TEXT_LIMIT: Final = MAX_REQUEST_SIZE - 2
_META: Final = ("name", "generateName")


def declared(node: SchemaNode, *, root: bool = False, within: tuple[str, ...] = ()) -> DeclType | None:
    """Return the declared type of a schema, or None if expressions cannot access its values.

    Expressions cannot access values that the schema does not describe, and neither quantities of built-in kinds. Values
    of a type within itself are objects without fields.

    Args:
        node: the schema.
        root: whether the schema is that of a resource, with apiVersion, kind and metadata.
        within: the names of the built-in types that contain this schema.
    """
    if node.definition:
        if node.format == "quantity":
            return None
        if node.definition in within:
            return object_decl("object", {}, 2)
        within = (*within, node.definition)
    if node.int_or_string:
        longest = node.validations.get("maxLength")
        return DeclType("dyn", types.DYN, 1, max_elements=_TEXT_LIMIT if longest is None else max(longest, 0) * 4)
    if root:
        node = with_meta(node)
    match node.type:
        case "array":
            return _list(node, within)
        case "object":
            return _map(node, within) if is_map(node) else _object(node, within)
        case "string":
            return _string(node)
        case "boolean":
            return BOOL
        case "number":
            return DOUBLE
        case "integer":
            return INT
    return None


def is_map(node: SchemaNode) -> bool:
    """Return whether a schema is that of a map: its `additionalProperties` is a schema with a type, not `true`."""
    values = node.additional_properties
    return values is not None and (values.__class__ is not SchemaNode or bool(values.type))


def with_meta(node: SchemaNode) -> SchemaNode:
    """Return a schema with the fields added that rules of a resource can always use, or the same schema if it has them.

    These are apiVersion, kind, metadata.name and metadata.generateName, all of them strings. The result is cached.
    """
    cached: SchemaNode | None = node.compiled.get("cel-meta")
    if cached is None:
        cached = node.compiled["cel-meta"] = node if _has_meta(node) else _added_meta(node)
    return cached


def _has_meta(node: SchemaNode) -> bool:
    props = node.properties
    meta = props.get("metadata")
    if (
        meta is None
        or meta.type != "object"
        or any(n not in props or props[n].type != "string" for n in ("kind", "apiVersion"))
    ):
        return False
    return all(n in meta.properties and meta.properties[n].type == "string" for n in _META)


def _added_meta(node: SchemaNode) -> SchemaNode:
    result = SchemaNode(node.type)
    for name in SchemaNode.__slots__:
        if name != "compiled":
            setattr(result, name, getattr(node, name))
    meta = SchemaNode("object")
    meta.properties = {name: SchemaNode("string") for name in _META}
    result.properties = {
        **node.properties,
        "kind": SchemaNode("string"),
        "apiVersion": SchemaNode("string"),
        "metadata": meta,
    }
    return result


def _list(node: SchemaNode, within: tuple[str, ...]) -> DeclType | None:
    items = None if node.items is None else declared(node.items, root=node.items.embedded_resource, within=within)
    if items is None:
        return None
    most = node.validations.get("maxItems")
    return list_decl(items, _TEXT_LIMIT // (items.min_size + 1) if most is None else max(most, 0))


def _map(node: SchemaNode, within: tuple[str, ...]) -> DeclType | None:
    values = node.additional_properties
    assert values is not None
    decl = declared(values, root=values.embedded_resource, within=within)
    if decl is None:
        return None
    most = node.validations.get("maxProperties")
    return map_decl(STRING, decl, _TEXT_LIMIT // (decl.min_size + 6) if most is None else max(most, 0))


def _object(node: SchemaNode, within: tuple[str, ...]) -> DeclType:
    fields: dict[str, DeclType] = {}
    size = 2
    for name, prop in node.properties.items():
        decl = declared(prop, root=prop.embedded_resource, within=within)
        if decl is None:
            continue
        escaped = escape(name)
        if escaped is not None:
            fields[escaped] = decl
        if name in node.required and prop.default is NO_DEFAULT:
            size += len(name.encode()) + decl.min_size + 4
    return object_decl("object", fields, size)


def _string(node: SchemaNode) -> DeclType:
    longest = node.validations.get("maxLength")
    match node.format:
        case "byte":
            return DeclType("bytes", types.BYTES, 2, max_elements=_TEXT_LIMIT if longest is None else max(longest, 0))
        case "duration":
            return DeclType("duration", types.DURATION, 3, max_elements=32)
        case "date":
            return DeclType("timestamp", types.TIMESTAMP, 12, max_elements=12)
        case "date-time":
            return DeclType("timestamp", types.TIMESTAMP, 21, max_elements=32)
    if longest is not None:
        most = max(longest, 0) * 4
    elif node.enum:
        most = max((len(value.encode()) for value in node.enum if isinstance(value, str)), default=0)
    else:
        most = _TEXT_LIMIT
    return DeclType("string", types.STRING, 2, max_elements=most)
