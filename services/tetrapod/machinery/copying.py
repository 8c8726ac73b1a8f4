"""Copies of objects: what is stored, cached or handed to others is not changed."""

from __future__ import annotations

from typing import Any

import orjson

from tetrapod.machinery.gvk import Object


def copy_object(obj: Object) -> Object:
    """A deep copy; two to three times faster than `copy.deepcopy`."""
    copied: Object = orjson.loads(orjson.dumps(obj))
    return copied


def copy_value(value: Any) -> Any:
    """A deep copy of a part of an object. Strategies copy what they take from an old object, which they may not change."""
    return orjson.loads(orjson.dumps(value)) if isinstance(value, dict | list) else value
