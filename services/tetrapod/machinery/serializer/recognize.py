"""What kind a decoded body says it is, and how a refused body is shown.

Endpoints call `recognize` after decoding. Follows k8s.io/apimachinery/pkg/runtime/serializer/json/meta.go and
summarizeData in k8s.io/apiserver/pkg/endpoints/handlers/rest.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.serializer.errors import DecodeError

_STRUCT: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'  # upstream's anonymous type
)
_SHOWN: Final = 30


def recognize(obj: Any) -> tuple[Object, str, str]:
    """The object (null counts as an empty one), its apiVersion and its kind, both possibly empty.

    Raises:
        DecodeError: not an object, or apiVersion or kind are no strings or make no sense.
    """
    if obj is None:
        return {}, "", ""
    if not isinstance(obj, dict):
        raise DecodeError(f"{_PREFIX}json: cannot unmarshal {_json_type(obj)} into Go value of type {_STRUCT}")
    found = []
    for key in ("apiVersion", "kind"):
        value = obj.get(key)
        if value is not None and not isinstance(value, str):
            raise DecodeError(f"{_PREFIX}json: cannot unmarshal {_json_type(value)} into Go struct field .{key} of type string")
        found.append(value or "")
    api_version, kind = found
    try:
        GroupVersion.parse(api_version)
    except ValueError as error:
        raise DecodeError(str(error)) from None
    return obj, api_version, kind


_PREFIX: Final = "couldn't get version/kind; json parse error: "


def syntax_text(error: DecodeError) -> str:
    """A JSON syntax error as the text of a refused body says it."""
    return f"{_PREFIX}{error}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def summary(data: bytes) -> str:
    """The beginning of a body, in hexadecimal unless it looks like JSON."""
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SHOWN else ""
    head = data[:_SHOWN]
    return (head.decode("utf-8", "replace") if head.startswith(b"{") else head.hex()) + more
