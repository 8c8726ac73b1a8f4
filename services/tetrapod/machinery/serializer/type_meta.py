"""Detection of apiVersion and kind in a decoded body, and the texts of errors about bodies that cannot be decoded.

Endpoints call `recognize` after decoding.

Upstream: k8s.io/apimachinery/pkg/runtime/serializer/json/meta.go; k8s.io/apiserver/pkg/endpoints/handlers/rest.go,
summarizeData.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.serializer.errors import DecodeError

# upstream's anonymous type
_STRUCT: Final = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_SHOWN: Final = 30


def recognize(obj: Any) -> tuple[Object, str, str]:
    """Return the decoded object ({} for null), its apiVersion and its kind, each "" if it is unset.

    Raises:
        DecodeError: the body is not an object, apiVersion or kind is not a string, or apiVersion is malformed.
    """
    if obj is None:
        return {}, "", ""
    if not isinstance(obj, dict):
        raise DecodeError(f"{_PREFIX}json: cannot unmarshal {_json_type(obj)} into Go value of type {_STRUCT}")
    texts = []
    for key in ("apiVersion", "kind"):
        value = obj.get(key)
        if value is not None and not isinstance(value, str):
            raise DecodeError(
                f"{_PREFIX}json: cannot unmarshal {_json_type(value)} into Go struct field .{key} of type string"
            )
        texts.append(value or "")
    api_version, kind = texts
    try:
        GroupVersion.parse(api_version)
    except ValueError as error:
        raise DecodeError(str(error)) from None
    return obj, api_version, kind


_PREFIX: Final = "couldn't get version/kind; json parse error: "


def syntax_text(error: DecodeError) -> str:
    """Return the text of the 400 for a body with a JSON syntax error: upstream's prefix and the error."""
    return f"{_PREFIX}{error}"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


NO_VERSION: Final = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
"""The error text for a decoded custom object without a version."""


def missing_kind(text: str) -> str:
    """Return the error text for an object without a kind. `text` is the object as it was sent, or its JSON."""
    return f"Object 'Kind' is missing in '{text}'"


def missing_version(text: str) -> str:
    """Return the error text for an object without a version in its apiVersion. `text` is that of the object."""
    return f"Object 'apiVersion' is missing in '{text}'"


def summary(data: bytes) -> str:
    """Return the first 30 bytes of a body for an error text, in hexadecimal unless they look like JSON."""
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SHOWN else ""
    head = data[:_SHOWN]
    return (head.decode("utf-8", "replace") if head.startswith(b"{") else head.hex()) + more
