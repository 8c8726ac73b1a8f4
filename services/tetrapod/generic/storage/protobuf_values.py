"""Conversion between objects that are stored as protobuf and the form in which Tetrapod stores them as JSON.

Custom resources are never protobuf. The message of an object has the same content as its JSON, with two exceptions:

- The messages of the claim templates of a StatefulSet have no apiVersion and kind. Upstream's defaulting adds both.
- The text of a RawExtension is in the field itself, and not in one beside it (machinery/raw_extensions.py).

Upstream: --storage-media-type; staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.protobuf import decoding, encode
from tetrapod.machinery.protobuf.messages import FORMER
from tetrapod.machinery.raw_extensions import beside_fields, into_fields, raw_paths
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.types import schema_for

_UNKNOWN: Final = GroupVersionKind("", "", "")
_NOT_SERVED: Final = GroupVersionKind("", "v1", "RangeAllocation")
"""A kind that only servers use. It has a message, but no schema."""
_STATEFUL_SET: Final = GroupVersionKind("apps", "v1", "StatefulSet")


def protobuf_of(obj: Object) -> bytes:
    r"""Return the value to store for an object of a built-in kind as protobuf, which begins with `k8s\0`.

    Args:
        obj: the object in its stored form. It may be modified.

    Raises:
        UnknownMessageError: the kind has no message.
    """
    group, _ = GroupVersion.parse(obj.get("apiVersion", ""))
    into_fields(obj, raw_paths(group, obj.get("kind", "")))
    return encode(obj)


def object_of(stored: bytes) -> Object:
    r"""Return the object in a stored value that begins with `k8s\0`.

    Raises:
        ValueError: the value cannot be decoded, or its kind is unknown.
    """
    obj = decoding.decode(stored, _UNKNOWN)
    gvk = GroupVersion.parse(obj.get("apiVersion", "")).with_kind(obj.get("kind", ""))
    if set(obj) <= {"apiVersion", "kind"}:
        raise _unknown(gvk)
    if gvk == _NOT_SERVED:
        return obj
    try:
        api_version = FORMER.get((gvk.api_version, gvk.kind), gvk.api_version)
        typed.decode(schema_for(GroupVersion.parse(api_version).with_kind(gvk.kind)), obj)
    except KeyError:
        raise _unknown(gvk) from None
    except typed.DecodeError as error:
        raise ValueError(str(error)) from None
    obj = beside_fields(obj, raw_paths(gvk.group, gvk.kind))
    if gvk == _STATEFUL_SET:
        for claim in (obj.get("spec") or {}).get("volumeClaimTemplates") or ():
            claim.update(kind="PersistentVolumeClaim", apiVersion="v1")
    return obj


def _unknown(gvk: GroupVersionKind) -> ValueError:
    return ValueError(f"no kind {gvk.kind} in {gvk.api_version} is known")
