"""Conversion of CEL values to JSON. Upstream: cel-go common/types, ConvertToNative to structpb.Value."""

from __future__ import annotations

import base64
from typing import Any, Final

from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.time import text_of
from tetrapod.machinery.cel.values import (
    NONE,
    Duration,
    ObjectLike,
    Optional,
    Timestamp,
    Uint,
    find,
    shown,
    type_of_value,
)

_ITSELF: Final = frozenset({str, int, bool, float, type(None)})


def json_value(value: Any) -> Any:
    """Return a CEL value as JSON: bytes as base64, times and durations as text, and an optional as the value inside it.

    Raises:
        EvaluationError: JSON cannot represent the value, such as an empty optional or a map with keys that are no
            strings.
    """
    kind = value.__class__
    if kind is Uint:
        return int(value)
    if kind in _ITSELF:
        return value
    if kind is bytes:
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if kind is dict or isinstance(value, ObjectLike):
        return {_json_key(key): json_value(find(value, key)) for key in value}
    if isinstance(value, (Timestamp, Duration)):
        return text_of(value)
    if isinstance(value, Optional) and value is not NONE:
        return json_value(value.value)
    raise EvaluationError(f"unsupported conversion to JSON: {type_of_value(value)}")


def _json_key(key: Any) -> str:
    if not isinstance(key, str):
        raise EvaluationError(f"map key {shown(key)} is not a string")
    return key
