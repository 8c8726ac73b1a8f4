"""Conversion of CEL values to JSON. Upstream: cel-go common/types, ConvertToNative to structpb.Value."""

from __future__ import annotations

import base64
import math
from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.time import text_of
from tetrapod.machinery.cel.types import CelType
from tetrapod.machinery.cel.values import (
    NONE,
    Duration,
    ObjectLike,
    Optional,
    Special,
    StructValue,
    Timestamp,
    Uint,
    find,
    type_of_value,
)

_ITSELF: Final = frozenset({str, bool, type(None)})
_SAFE: Final = (1 << 53) - 1
"""The largest integer that is a number in JSON. Larger ones become strings."""
PATCH_TYPE: Final = "JSONPatch"
"""The type of the operations that an expression returns. No value can contain them."""
_GO_NAMES: Final = {"NamedFormat": "Format"}
"""The names of Go types that differ from those in CEL."""
_WHOLE_NAMES: Final = "kubernetes.authorization."
"""The prefix of types whose errors contain the whole name."""


def json_value(value: Any) -> Any:
    """Return a CEL value as JSON: bytes as base64, times and durations as text, and an optional as the value inside it.

    Integers beyond 2**53 become strings.

    Raises:
        EvaluationError: JSON cannot represent the value, such as an empty optional or a map with keys that are no
            strings. The text is cel-go's.
    """
    kind = value.__class__
    if kind in _ITSELF:
        return value
    if kind is int or kind is Uint:
        return int(value) if -_SAFE <= value <= _SAFE else str(int(value))
    if kind is float:
        return _number(value)
    if kind is bytes:
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, StructValue) and value.type_name == PATCH_TYPE:
        raise EvaluationError("cannot convert to native type: *structpb.Value")
    if kind is dict or isinstance(value, ObjectLike):
        return {_json_key(key): json_value(find(value, key)) for key in value}
    if isinstance(value, (Timestamp, Duration)):
        return text_of(value)
    if isinstance(value, Optional):
        if value is NONE:
            raise EvaluationError("optional.none() dereference")
        return json_value(value.value)
    raise EvaluationError(_unsupported(value))


def _unsupported(value: Any) -> str:
    if isinstance(value, CelType):
        return "type conversion not supported for 'type'"
    name = type_of_value(value).name
    if isinstance(value, Special) and not name.startswith(_WHOLE_NAMES):
        name = name.rpartition(".")[2]
    return f"type conversion error from '{_GO_NAMES.get(name, name)}' to '*structpb.Value'"


def _number(value: float) -> float:
    if math.isfinite(value):
        return value
    text = "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    raise EvaluationError(
        "json: error calling MarshalJSON for type *structpb.Value: proto: google.protobuf.Value.number_value: invalid "
        f"{text} value"
    )


def _json_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        raise EvaluationError("type conversion error from bool to 'string'")
    raise EvaluationError(f"unsupported type conversion from '{type_of_value(key).name}' to string")
