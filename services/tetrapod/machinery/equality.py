"""`identical`: whether two decoded values are the same JSON, kinds of numbers included."""

from __future__ import annotations

from typing import Any

import orjson


def identical(a: Any, b: Any) -> bool:
    """Upstream's DeepEqual of unstructured values: unlike Python's, it tells 1 from 1.0 and from true."""
    return bool(a == b) and orjson.dumps(a, option=orjson.OPT_SORT_KEYS) == orjson.dumps(b, option=orjson.OPT_SORT_KEYS)
