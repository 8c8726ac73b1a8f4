"""`identical`: whether two decoded values are the same JSON, kinds of numbers included. `same`: whether Go's structs of them would be."""

from __future__ import annotations

from typing import Any

import orjson


def identical(a: Any, b: Any) -> bool:
    """Upstream's DeepEqual of unstructured values: unlike Python's, it tells 1 from 1.0 and from true."""
    return bool(a == b) and orjson.dumps(a, option=orjson.OPT_SORT_KEYS) == orjson.dumps(b, option=orjson.OPT_SORT_KEYS)


def same(a: Any, b: Any) -> bool:
    """Upstream's Semantic.DeepEqual of built-in objects: null and an empty list count as absent.

    (An empty text that is left of decoding is behind a pointer.)
    """
    if isinstance(a, dict) and isinstance(b, dict):
        return all(same(a.get(key), b.get(key)) for key in {*a, *b})
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if a in (None, []) and b in (None, []):
        return True
    return type(a) is type(b) and bool(a == b)
