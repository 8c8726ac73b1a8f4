"""What upstream says where a map does not fit a struct: strategic patches and applied objects are no JSON when they become objects.

Upstream: k8s.io/apimachinery/pkg/runtime/converter.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.patch import goformat
from tetrapod.machinery.schema.decode_errors import Mismatch

_WHOLE: Final = frozenset({"int", "int32", "int64", "uint32", "uint64"})
_BASIC: Final = _WHOLE | {"bool", "string", "float64"}


def misfit(error: Exception) -> str:
    """The text of an error of the decoder, as filling the struct from a map would have said it."""
    mismatch = error.__cause__
    if not isinstance(mismatch, Mismatch):
        return str(error)
    value, wanted = _reflect_kind(mismatch.value), mismatch.wanted
    if wanted.startswith("[]"):
        return f"cannot restore slice from {value}"
    if wanted.startswith("map["):
        return f"cannot restore map from {value}"
    if wanted not in _BASIC:
        return f"cannot restore struct from: {value}"
    # Go would make a letter of a whole number and cut a fraction off, so upstream calls these two pairs convertible.
    if (value == "int64" and wanted == "string") or (value == "float64" and wanted in _WHOLE):
        return f"cannot convert {value} to {mismatch.named}"
    return f"unrecognized type: {wanted}"


def _reflect_kind(value: Any) -> str:
    """Go's name for what kind of value this is."""
    return {list: "slice", dict: "map"}.get(value.__class__) or goformat.type_name(value)
