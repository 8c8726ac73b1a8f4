"""Metadata of custom resources and of the resources embedded in them (x-kubernetes-embedded-resource).

The schema does not describe metadata: it is an ObjectMeta, and is decoded as in any other kind.

Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta (coerce.go, validation.go).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import orjson

from tetrapod.machinery import field
from tetrapod.machinery.error_limits import MAX_ERRORS
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.metadata import validate_object_meta
from tetrapod.machinery.names import is_dns1035_label, name_is_path_segment
from tetrapod.machinery.schema.decode import DecodeError, decode
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types.definitions import load

_INTEGERS: Final = ("generation", "deletionGracePeriodSeconds")
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class CoerceError(Exception):
    """The error for an embedded resource with a malformed apiVersion, kind or metadata.

    `error` has the path and the detail.
    """

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def coerce_root(obj: Object) -> list[str]:
    """Decode `metadata` of a custom resource in place, and return the paths of unknown fields, which are dropped.

    A null is removed.

    Raises:
        DecodeError: a value does not have the type of its field.
    """
    if obj.get("metadata") is None:
        obj.pop("metadata", None)
        return []
    return [f"metadata.{path}" for path in _decode(obj["metadata"])]


def _decode(metadata: Any) -> list[str]:
    """Decode an ObjectMeta in place, and return the paths of unknown fields, which are dropped, sorted by key.

    Upstream encodes the metadata as JSON first, which sorts keys, and writes whole floats as integers.

    Raises:
        DecodeError: a value does not have the type of its field.
    """
    if isinstance(metadata, dict):
        for name in _INTEGERS:
            if isinstance(number := metadata.get(name), float) and number.is_integer():
                metadata[name] = int(number)
    unknown = decode(load(OBJECT_META), metadata)
    return sorted(unknown) if 1 < len(unknown) <= MAX_ERRORS else unknown


def repair_root(obj: Object) -> None:
    """Drop the unknown and malformed fields of `metadata` of a stored custom resource, in place.

    A generation that is missing, malformed or 0 becomes 1. Metadata that is no object is kept.
    """
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return
    repaired = _without_malformed(metadata)
    repaired["generation"] = repaired.get("generation") or 1
    obj["metadata"] = repaired


def repair_embedded(node: SchemaNode, value: Any) -> None:
    """Drop the malformed parts of embedded resources of a stored object at any depth, in place.

    These are unknown and malformed fields of the metadata, and an apiVersion or kind of another type than string. Null
    in the place of the metadata becomes {}.
    """
    if _has_embedded(node):
        _repair(node, value)


def _repair(node: SchemaNode, value: Any) -> None:
    if isinstance(value, dict):
        if node.embedded_resource:
            for key in ("apiVersion", "kind"):
                if key in value and not isinstance(value[key], str):
                    del value[key]
            if isinstance(value.get("metadata"), dict):
                value["metadata"] = _without_malformed(value["metadata"])
            elif value.get("metadata", {}) is None:
                value["metadata"] = {}
        for key, item in value.items():
            if key in node.properties:
                _repair(node.properties[key], item)
            elif node.additional_properties is not None:
                _repair(node.additional_properties, item)
    elif isinstance(value, list) and node.items is not None:
        for item in value:
            _repair(node.items, item)


def _without_malformed(metadata: Object) -> Object:
    """Return the decoded fields of an ObjectMeta, without those that are unknown or malformed.

    Upstream: apiextensions-apiserver/pkg/apiserver/schema/objectmeta/coerce.go, GetObjectMetaWithOptions with
    DropMalformedFields.
    """
    repaired: Object = {}
    for name, value in metadata.items():
        field_alone = {name: value}
        with suppress(DecodeError):
            _decode(field_alone)
            repaired |= field_alone
    return repaired


def coerce_embedded(node: SchemaNode, value: Any, *, keep_nulls: bool = False) -> list[str]:
    """Decode the metadata of embedded resources at any depth in place, and return the paths of unknown fields.

    Unknown fields are dropped, and null becomes {}.

    Args:
        node: the schema of the value.
        value: the custom resource.
        keep_nulls: whether null is kept.

    Raises:
        CoerceError: apiVersion, kind or metadata of an embedded resource is malformed.
    """
    if not _has_embedded(node):
        return []
    unknown: list[str] = []
    _coerce(node, value, "", unknown, keep_nulls)
    return unknown


def validate_embedded(node: SchemaNode, value: Any, path: str = "") -> list[FieldError]:
    """Return the errors of embedded resources at any depth.

    Embedded resources must have an apiVersion and a kind. If they have metadata, it must be valid.

    Args:
        node: the schema of the value.
        value: the custom resource, or a part of it.
        path: the field path of the value.
    """
    if not _has_embedded(node):
        return []
    errors: list[FieldError] = []
    if isinstance(value, dict):
        if node.embedded_resource:
            errors += _validate_resource(value, path)
        for key, item in value.items():
            if key in node.properties:
                errors += validate_embedded(node.properties[key], item, field.child(path, key))
            elif node.additional_properties is not None:
                errors += validate_embedded(node.additional_properties, item, field.key(path, key))
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            errors += validate_embedded(node.items, item, field.index(path, index))
    return errors


def _has_embedded(node: SchemaNode) -> bool:
    """Return whether a schema or one below it is that of an embedded resource. The result is cached in the node."""
    known: bool | None = node.compiled.get("embedded")
    if known is None:
        below = [*node.properties.values(), *(n for n in (node.items, node.additional_properties) if n is not None)]
        known = node.compiled["embedded"] = node.embedded_resource or any(_has_embedded(child) for child in below)
    return known


def _coerce(node: SchemaNode, value: Any, path: str, unknown: list[str], keep_nulls: bool) -> None:
    if isinstance(value, dict):
        if node.embedded_resource:
            _coerce_resource(value, path, unknown, keep_nulls)
        for key, item in value.items():
            if key in node.properties:
                _coerce(node.properties[key], item, field.child(path, key), unknown, keep_nulls)
            elif node.additional_properties is not None:
                _coerce(node.additional_properties, item, field.child(path, key), unknown, keep_nulls)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            _coerce(node.items, item, field.index(path, index), unknown, keep_nulls)


def _coerce_resource(value: Object, path: str, unknown: list[str], keep_nulls: bool) -> None:
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            raise CoerceError(field.invalid(field.child(path, key), value[key], "must be a string"))
    if "metadata" not in value:
        return
    if value["metadata"] is None:
        value["metadata"] = None if keep_nulls else {}
        return
    at = field.child(path, "metadata")
    # Go prints maps with sorted keys
    quoted = orjson.loads(orjson.dumps(value["metadata"], option=orjson.OPT_SORT_KEYS))
    try:
        unknown_fields = _decode(value["metadata"])
    except DecodeError as error:
        raise CoerceError(field.invalid(at, quoted, str(error))) from None
    unknown += [field.child(at, name) for name in unknown_fields]


def _validate_resource(value: Object, path: str) -> list[FieldError]:
    errors = [field.required(field.child(path, key)) for key in ("apiVersion", "kind") if key not in value]
    if "apiVersion" in value:
        errors += _validate_api_version(value["apiVersion"], field.child(path, "apiVersion"))
    if "kind" in value:
        errors += _validate_kind(value["kind"], field.child(path, "kind"))
    if isinstance(value.get("metadata"), dict):
        meta = {**value["metadata"], "name": value["metadata"].get("name") or "fakename"}
        at = field.child(path, "metadata")
        errors += field.distinct(validate_object_meta(meta, bool(meta.get("namespace")), name_is_path_segment, at))
    return errors


def _validate_api_version(value: Any, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [field.invalid(path, value, "must be a string")]
    if not value:
        return [field.invalid(path, value, "must not be empty")]
    try:
        GroupVersion.parse(value)
    except ValueError as error:
        return [field.invalid(path, value, str(error))]
    return []


def _validate_kind(value: Any, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [field.invalid(path, value, "must be a string")]
    if not value:
        return [field.invalid(path, value, "must not be empty")]
    if texts := is_dns1035_label(value.lower()):
        return [field.invalid(path, value, "may have mixed case, but should otherwise match: " + ",".join(texts))]
    return []
