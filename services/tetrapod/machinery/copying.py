"""Deep copies of objects. Stored, cached and shared objects must not be modified, so they are copied first."""

from __future__ import annotations

from typing import Any

import orjson

from tetrapod.machinery.gvk import Object


def copy_object(obj: Object) -> Object:
    """Return a deep copy; two to three times faster than `copy.deepcopy`."""
    copied: Object = orjson.loads(orjson.dumps(obj))
    return copied


def copy_large(value: Any) -> Any:
    """Return a deep copy of an object, or a part of it, for a thread that must not keep the event loop from running.

    orjson holds the interpreter's lock for the whole object: a tenth of a second for one of 3 MB.
    """
    if type(value) is dict:
        return {key: copy_large(item) if type(item) is dict or type(item) is list else item for key, item in value.items()}
    if type(value) is list:
        return [copy_large(item) if type(item) is dict or type(item) is list else item for item in value]
    return value


def copy_value(value: Any) -> Any:
    """Return a deep copy of a part of an object. Strategies copy what they take from an old object, which they must not modify."""
    return orjson.loads(orjson.dumps(value)) if isinstance(value, dict | list) else value
