"""The nesting limit of every JSON value in the server: bodies, patched objects, and results of webhooks and policies.

Functions that walk a value may recurse, because every decoder and every patch enforces this limit. Upstream's limit is
10,000 (Go's encoding/json), and the error texts are the same. Real objects nest fewer than 50 levels.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

MAX_DEPTH: Final = 200
"""The most levels of objects and lists.

orjson writes 254 levels. The rest is reserved for what wraps an object (lists, watch events, Tables, reviews, audit
events) and for managedFields, which repeat the nesting of their object four levels down.
"""
STORED_DEPTH: Final = 254
"""The most levels that orjson writes. A stored object may have so many, because its managedFields repeat its nesting.
"""
_PADDING: Final = STORED_DEPTH - MAX_DEPTH


class TooDeepError(ValueError):
    """The error for a value that nests deeper than MAX_DEPTH."""

    def __init__(self) -> None:
        super().__init__("exceeded max depth")


def encode_within(value: Any, option: int | None = None) -> bytes:
    """Encode a value as JSON, rejecting one that nests too deeply.

    The value is wrapped in lists so that exactly MAX_DEPTH levels are left for it, and orjson itself detects deeper
    values. This costs 1.5 µs for any size, as much as a walk in Python over ten values.

    Args:
        value: the value.
        option: the options of `orjson.dumps`.

    Raises:
        TooDeepError: the value nests deeper than MAX_DEPTH.
        TypeError: the value contains an object that JSON cannot represent.
    """
    for _ in range(_PADDING):
        value = [value]
    try:
        return orjson.dumps(value, option=option)[_PADDING:-_PADDING]
    except TypeError as error:
        if is_depth_error(error):
            raise TooDeepError from None
        raise


def ensure_depth(value: Any) -> None:
    """Raise `TooDeepError` for a value that nests deeper than MAX_DEPTH.

    Raises:
        TooDeepError: the value nests too deeply.
        TypeError: the value contains an object that JSON cannot represent.
    """
    if isinstance(value, dict | list):
        encode_within(value)


def is_depth_error(error: BaseException) -> bool:
    """Return whether an exception means that a value nests too deeply for Python, for orjson or for MAX_DEPTH."""
    return isinstance(error, RecursionError | TooDeepError) or (
        isinstance(error, TypeError) and str(error) == "Recursion limit reached"
    )
