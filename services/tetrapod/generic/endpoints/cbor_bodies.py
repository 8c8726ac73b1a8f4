"""Decodes CBOR bodies to objects, with upstream's error texts.

Upstream determines the kind of a built-in object before it decodes the object; an error of the first step does not
name a kind. Here an object is decoded by the expected kind first, and its kind is determined only if that fails. A
custom object is decoded at once.
Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/cbor/cbor.go, Decode
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.machinery import cbor
from tetrapod.machinery.cbor.decoding import ARRAY, BYTES, MAP, NEGATIVE, PRIMITIVE, TEXT, TYPE_NAMES, UNSIGNED
from tetrapod.machinery.cbor.diagnostic import diagnose
from tetrapod.machinery.cbor.typed import TypeMismatch, decode_typed
from tetrapod.machinery.cbor.wellformed import check_well_formed
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer.errors import Decoded, DecodeError

_UNDETERMINED: Final = "unable to determine group/version/kind: "
_TYPE_META: Final = SchemaNode("object")
_TYPE_META.definition = "io.k8s.apimachinery.pkg.apis.meta.v1.TypeMeta"
_TYPE_META.properties = {"apiVersion": SchemaNode("string"), "kind": SchemaNode("string")}


class UnfitBodyError(Exception):
    """The error for a body of a known kind that cannot be decoded. `gvk` is its kind, and the text is upstream's."""

    def __init__(self, text: str, gvk: GroupVersionKind) -> None:
        super().__init__(text)
        self.gvk = gvk


def decode_object(
    body: bytes, kind: GroupVersionKind, structure_of: Callable[[GroupVersionKind], SchemaNode | None]
) -> Decoded:
    """Return the object of a built-in kind in a body, without unknown fields.

    The first unknown field is in `duplicates`, the errors of strict decoding.

    Args:
        body: the body.
        kind: the kind that a body without kind or apiVersion has.
        structure_of: returns the schema of the kind in the body; None if no such kind is registered.

    Raises:
        DecodeError: the body is not a CBOR map, or its kind cannot be determined.
        UnfitBodyError: a value has a wrong type, or the map has duplicate members, invalid UTF-8 or the like.
    """
    _check_form(body)
    node = structure_of(kind)
    assert node is not None  # it is the kind of the endpoint
    try:
        obj, unknown = decode_typed(body, node)
    except (TypeMismatch, cbor.InvalidError) as error:
        gvk = _kind_of(body, kind)
        if gvk == kind:
            raise UnfitBodyError(_text_of(error, gvk), gvk) from None
    else:  # nothing in the body prevents that its kind is determined
        gvk = _named_kind(obj or {}, kind)
    type_meta = {"kind": gvk.kind, "apiVersion": gvk.api_version}
    if gvk != kind:
        node = structure_of(gvk)
        if node is None:
            return Decoded(type_meta, [])
        try:
            obj, unknown = decode_typed(body, node)
        except (TypeMismatch, cbor.InvalidError) as error:
            raise UnfitBodyError(_text_of(error, gvk), gvk) from None
    texts = [] if unknown is None else [f"cbor: found unknown field at map element index {unknown}"]
    return Decoded({**(obj or {}), **type_meta}, texts)


def _text_of(error: TypeMismatch | cbor.InvalidError, gvk: GroupVersionKind) -> str:
    return error.text(f"{gvk.version}.{gvk.kind}") if isinstance(error, TypeMismatch) else str(error)


def decode_custom_object(body: bytes, kind: GroupVersionKind) -> Object:
    """Return the custom object in a body.

    Args:
        body: the body.
        kind: the kind that the object is expected to have.

    Raises:
        DecodeError: the body is not a CBOR map, or its kind is missing or cannot be determined.
        UnfitBodyError: the map has duplicate members, invalid UTF-8, a number of more than 64 bits or the like, or the
            apiVersion is missing.
    """
    try:
        value = cbor.decode(body)
    except cbor.MalformedError as error:
        raise DecodeError(f"{_UNDETERMINED}{error}") from None
    except cbor.InvalidError as error:
        raise UnfitBodyError(str(error), _kind_of(body, kind)) from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        _kind_of(body, kind)
    _check_kind(value, body)
    obj: Object = value
    return obj


def _check_form(body: bytes) -> None:
    """Check that a body is one well-formed data item.

    Raises:
        DecodeError: it is not.
    """
    try:
        check_well_formed(body)
    except cbor.MalformedError as error:
        raise DecodeError(f"{_UNDETERMINED}{error}") from None


def decode_configuration(body: bytes) -> Object:
    """Return the apply configuration in the body of a patch.

    Raises:
        DecodeError: the body is not a CBOR map, or has duplicate members, invalid UTF-8, a number of more than 64 bits
            or the like.
    """
    value = cbor.decode(body)
    if value is None:
        return {}
    if not isinstance(value, dict):
        type_name = _type_name(value, body)
        raise DecodeError(f"cbor: cannot unmarshal {type_name} into Go value of type map[string]interface {{}}")
    return value


def _kind_of(body: bytes, default: GroupVersionKind) -> GroupVersionKind:
    """Return the kind in a body; a missing part, or a malformed apiVersion, is that of `default`.

    Raises:
        DecodeError: the body is not a map, or its kind or apiVersion is not a string.
    """
    try:
        obj = decode_typed(body, _TYPE_META)[0] or {}
    except TypeMismatch as error:
        raise DecodeError(f"{_UNDETERMINED}{error.text('v1.TypeMeta')}") from None
    except cbor.InvalidError as error:
        raise DecodeError(f"{_UNDETERMINED}{error}") from None
    return _named_kind(obj, default)


def _named_kind(obj: Object, default: GroupVersionKind) -> GroupVersionKind:
    """Return the kind of a decoded object; a missing part, or a malformed apiVersion, is that of `default`."""
    kind = obj.get("kind") or default.kind
    try:
        group, version = GroupVersion.parse(obj.get("apiVersion") or "")
    except ValueError:
        group, version = "", ""
    if not version and group in ("", default.group):
        return default.group_version.with_kind(kind)
    return GroupVersionKind(group, version, kind)


def _check_kind(obj: Object, body: bytes) -> None:
    """Check that a custom object has a kind and an apiVersion.

    Raises:
        DecodeError: the kind is missing.
        UnfitBodyError: the apiVersion is missing.
    """
    api_version, kind = (value if isinstance(value := obj.get(name), str) else "" for name in ("apiVersion", "kind"))
    if not kind:
        raise DecodeError(f"Object 'Kind' is missing in '{diagnose(body)}'")
    if not api_version:
        raise UnfitBodyError(f"Object 'apiVersion' is missing in '{diagnose(body)}'", GroupVersionKind("", "", kind))


def _type_name(value: Any, body: bytes) -> str:
    """Return CBOR's name of the type of a decoded value.

    Args:
        value: the value.
        body: the body that contains it, in which a string may be a text or a byte string.
    """
    match value:
        case bool() | float() | None:
            return TYPE_NAMES[PRIMITIVE]
        case int():
            return TYPE_NAMES[UNSIGNED if value >= 0 else NEGATIVE]
        case str():
            encoded = cbor.encode(value)[len(cbor.MAGIC) :]
            as_text = bytes((encoded[0] | 0x20,)) + encoded[1:]
            return TYPE_NAMES[TEXT if as_text in body else BYTES]
        case list():
            return TYPE_NAMES[ARRAY]
    return TYPE_NAMES[MAP]
