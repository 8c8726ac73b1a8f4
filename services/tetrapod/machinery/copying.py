"""Deep copies of objects. Stored, cached and shared objects must not be modified, so they are copied first."""

from __future__ import annotations

import sys
from typing import Any, Final

import orjson

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.json_pieces import loads

_OWN_REFERENCES: Final = 2
"""References to a value that only one local variable holds: the variable, and the argument of `sys.getrefcount`."""


def copy_object(obj: Object) -> Object:
    """Return a deep copy of an object. This is two to three times faster than `copy.deepcopy`."""
    copied: Object = loads(orjson.dumps(obj))
    return copied


def copy_large(value: Any) -> Any:
    """Return a deep copy of an object or a part of it, in a thread, without keeping the event loop from running.

    `copy_object` is faster, but orjson encodes a whole object while it holds the interpreter's lock.
    """
    if type(value) is dict:
        return {
            key: copy_large(item) if type(item) is dict or type(item) is list else item for key, item in value.items()
        }
    if type(value) is list:
        return [copy_large(item) if type(item) is dict or type(item) is list else item for item in value]
    return value


def free_large(values: list[Any]) -> None:
    """Free large objects part by part, in a thread, without keeping the event loop from running.

    A million objects that are freed at once keep the event loop from running for 50 ms.

    Args:
        values: the objects to free; the list is empty afterwards. Objects and parts of them that are also referenced
            elsewhere are not changed.
    """
    while values:
        value = values.pop()
        if sys.getrefcount(value) > _OWN_REFERENCES:
            continue
        if type(value) is dict:
            values.extend([item for item in value.values() if type(item) is dict or type(item) is list])
            value.clear()
        elif type(value) is list:
            values.extend([item for item in value if type(item) is dict or type(item) is list])
            value.clear()


def copy_value(value: Any) -> Any:
    """Return a deep copy of a dictionary or list, and any other value as it is.

    Strategies copy the parts that they take from a stored object, which they must not modify.
    """
    return loads(orjson.dumps(value)) if isinstance(value, dict | list) else value
