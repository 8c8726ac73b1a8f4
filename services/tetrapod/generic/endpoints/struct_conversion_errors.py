"""Error texts for maps that cannot be converted to a struct.

Results of strategic merge patches and server-side apply are converted from maps, not decoded from JSON, and so have
other texts.
Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/converter.go
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.endpoints.quoted_objects import in_go_order
from tetrapod.machinery.golang import formatting
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.decode import first_error
from tetrapod.machinery.schema.decode_errors import Mismatch
from tetrapod.machinery.schema_node import SchemaNode

_WHOLE: Final = frozenset({"int", "int32", "int64", "uint8", "uint32", "uint64"})
_BASIC: Final = _WHOLE | {"bool", "string", "float64"}


def decoding_error(obj: Object, node: SchemaNode) -> str:
    """Return the text for the first value of a wrong type in `obj`, in the order of the struct's fields.

    Args:
        obj: an object that has at least one such value.
        node: the schema of the object.
    """
    error = first_error(node, in_go_order(obj, node))
    if not isinstance(error, Mismatch):
        return str(error)
    return error.alone if error.ends else _words(error)


def _words(mismatch: Mismatch) -> str:
    value, wanted = _reflect_kind(mismatch.value), mismatch.wanted
    if wanted.startswith("[]"):
        return f"cannot restore slice from {value}"
    if wanted.startswith("map["):
        return f"cannot restore map from {value}"
    if wanted not in _BASIC:
        return f"cannot restore struct from: {value}"
    # Go converts integers to strings (as code points) and truncates floats, so upstream considers these two pairs
    # convertible.
    if (value == "int64" and wanted == "string") or (value == "float64" and wanted in _WHOLE):
        return f"cannot convert {value} to {mismatch.named}"
    return f"unrecognized type: {wanted}"


def _reflect_kind(value: Any) -> str:
    """Return the name of the value's reflect.Kind in Go."""
    return {list: "slice", dict: "map"}.get(value.__class__) or formatting.type_name(value)
