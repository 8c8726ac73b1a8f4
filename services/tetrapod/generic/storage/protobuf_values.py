"""Objects that a stock kube-apiserver stored as protobuf, in the form in which Tetrapod stores them.

Custom resources are never protobuf. Upstream: --storage-media-type;
staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.protobuf import decoding
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.types import schema_for

_UNKNOWN: Final = GroupVersionKind("", "", "")
_NOT_SERVED: Final = GroupVersionKind("", "v1", "RangeAllocation")
"""A kind that only servers use. It has a message, but no schema."""


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
        typed.decode(schema_for(gvk), obj)
    except KeyError:
        raise _unknown(gvk) from None
    except typed.DecodeError as error:
        raise ValueError(str(error)) from None
    return obj


def _unknown(gvk: GroupVersionKind) -> ValueError:
    return ValueError(f"no kind {gvk.kind} in {gvk.api_version} is known")
