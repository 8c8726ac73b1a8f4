"""Deep copies of objects. Stored, cached and shared objects must not be modified, so they are copied first."""

from __future__ import annotations

from typing import Any

import orjson

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.json_pieces import dumps, loads
from tetrapod.machinery.serializer.raw_json import Verbatim, carry


def copy_object(obj: Object) -> Object:
    """Return a deep copy of an object. This is two to three times faster than `copy.deepcopy`."""
    copied: Object = copy_value(obj)
    return copied


def copy_large(obj: Object) -> Object:
    """Return a deep copy of a large object, in steps between which other threads can run.

    It is meant for calls in a worker thread. `copy_object` is faster for small objects, but it encodes a whole object
    while it holds the interpreter's lock. Values that keep their text (`Verbatim`) become ordinary dictionaries.
    """
    copied: Object = loads(dumps(obj))
    return copied


def copy_value(value: Any) -> Any:
    """Return a deep copy of a dictionary or list, and any other value as it is.

    Strategies copy the parts that they take from a stored object, which they must not modify.
    """
    if not isinstance(value, dict | list):
        return value
    has_texts = False

    def plain(part: Any) -> Any:
        nonlocal has_texts
        has_texts = has_texts or isinstance(part, Verbatim)
        if isinstance(part, dict):
            return dict(part)
        if isinstance(part, list):
            return list(part)
        return str(part) if isinstance(part, str) else int(part)

    copied = loads(orjson.dumps(value, default=plain, option=orjson.OPT_PASSTHROUGH_SUBCLASS))
    if has_texts:
        carry(value, copied)
    return copied
