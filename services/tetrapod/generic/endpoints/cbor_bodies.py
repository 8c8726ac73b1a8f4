"""Decodes CBOR bodies to objects, with upstream's error texts.

Upstream determines the kind of a built-in object before it decodes the object; an error of the first step does not
name a kind. A custom object is decoded at once.
Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/cbor/cbor.go, Decode
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from tetrapod.machinery import cbor
from tetrapod.machinery.cbor.decoding import ARRAY, BYTES, MAP, NEGATIVE, PRIMITIVE, TEXT, TYPE_NAMES, UNSIGNED
from tetrapod.machinery.cbor.diagnostic import diagnose
from tetrapod.machinery.cbor.unknown_fields import strict_error
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema.decode_errors import Mismatch
from tetrapod.machinery.serializer.errors import DecodeError

_UNDETERMINED: Final = "unable to determine group/version/kind: "
_TYPE_META: Final = ("apiVersion", "kind")


class UnfitBodyError(Exception):
    """The error for a body of a known kind that cannot be decoded. `gvk` is its kind, and the text is upstream's."""

    def __init__(self, text: str, gvk: GroupVersionKind) -> None:
        super().__init__(text)
        self.gvk = gvk


def decode_object(body: bytes, kind: GroupVersionKind, *, custom: bool = False) -> Object:
    """Return the object in a body.

    Args:
        body: the body.
        kind: the kind that a body without kind or apiVersion has.
        custom: whether it is a custom object, whose body must state its kind.

    Raises:
        DecodeError: the body is not a CBOR map, or its kind cannot be determined.
        UnfitBodyError: the map has duplicate members, invalid UTF-8, a number of more than 64 bits or the like, or
            the apiVersion of a custom object is missing.
    """
    try:
        value = cbor.decode(body)
    except cbor.MalformedError as error:
        raise DecodeError(f"{_UNDETERMINED}{error}") from None
    except cbor.InvalidError as error:
        if error.outermost or not isinstance(error.value, dict):
            raise DecodeError(f"{_UNDETERMINED}{error}") from None
        raise UnfitBodyError(str(error), _kind_of(error.value, kind)) from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        note = " (cannot decode CBOR array to struct without toarray option)" if isinstance(value, list) else ""
        text = f"cbor: cannot unmarshal {_type_name(value, body)} into Go value of type v1.TypeMeta{note}"
        raise DecodeError(_UNDETERMINED + text)
    if custom:
        _check_kind(value, body)
    else:
        _check_type_meta(value, body)
    return value


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


def _type_meta(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Return the apiVersion and the kind in a body; "" for one that is missing or not a string."""
    api_version, kind = (value if isinstance(value := obj.get(name), str) else "" for name in _TYPE_META)
    return api_version, kind


def _kind_of(obj: Mapping[str, Any], default: GroupVersionKind) -> GroupVersionKind:
    """Return the kind in a body; a missing or malformed part is that of `default`."""
    api_version, kind = _type_meta(obj)
    try:
        group_version = GroupVersion.parse(api_version or default.api_version)
    except ValueError:
        group_version = default.group_version
    return group_version.with_kind(kind or default.kind)


def _check_kind(obj: Object, body: bytes) -> None:
    """Check that a custom object has a kind and an apiVersion.

    Raises:
        DecodeError: the kind is missing.
        UnfitBodyError: the apiVersion is missing.
    """
    api_version, kind = _type_meta(obj)
    if not kind:
        raise DecodeError(f"Object 'Kind' is missing in '{diagnose(body)}'")
    if not api_version:
        raise UnfitBodyError(f"Object 'apiVersion' is missing in '{diagnose(body)}'", GroupVersionKind("", "", kind))


def _check_type_meta(obj: Object, body: bytes) -> None:
    """Check that the apiVersion and the kind of a built-in object are strings or null.

    Raises:
        DecodeError: one is not; if both are not, the text is about the first in the body.
    """
    for name, value in obj.items():
        if name in _TYPE_META and not isinstance(value, str | None):
            type_name = _type_name(value, body)
            text = f"cbor: cannot unmarshal {type_name} into Go struct field v1.TypeMeta.{name} of type string"
            raise DecodeError(_UNDETERMINED + text)


def mismatch_text(error: Mismatch, kind: GroupVersionKind, body: bytes) -> str:
    """Return the error text for a value of a wrong type in a built-in object.

    The text names the outermost field that contains the value.

    Args:
        error: the value, and the Go type of the field.
        kind: the kind of the object.
        body: the CBOR body, in which the value's type is looked up.
    """
    type_name = _type_name(error.value, body)
    if not error.outermost_field:
        return f"cbor: cannot unmarshal {type_name} into Go value of type {error.named}"
    field = f"{kind.version}.{kind.kind}.{error.outermost_field}"
    return f"cbor: cannot unmarshal {type_name} into Go struct field {field} of type {error.named}"


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


def strict_errors(body: bytes, unknown: Collection[str]) -> list[str]:
    """Return the errors of strict decoding of a built-in object: the first unknown field.

    Args:
        body: the body, which can be decoded.
        unknown: the paths of the unknown fields; there is at least one.
    """
    return [strict_error(cbor.decode(body), unknown)]
