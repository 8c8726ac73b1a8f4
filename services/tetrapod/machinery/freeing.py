"""Deallocation of large objects, without keeping other threads from running."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")


def _own_references() -> int:
    value: list[Any] = []
    return sys.getrefcount(value)


_OWN_REFERENCES: Final = _own_references()
"""The result of `sys.getrefcount` for a value that only one local variable holds. It is 2 up to CPython 3.13, and 1
from 3.14 on, where the argument is a borrowed reference.
"""
_AT_ONCE: Final = 4096
"""Members of a container that are freed at once: about a millisecond if each is a tuple of texts."""


def free_large(values: list[Any]) -> None:
    """Take large objects apart and deallocate them part by part, so that other threads can run in between.

    Call it in a worker thread. A million objects that are deallocated at once keep the event loop from running for 50
    ms.

    Args:
        values: the objects; the list is empty afterwards, and the caller must not use them any more. Objects, and parts
            of them, that are also referenced elsewhere are not changed.
    """
    while values:
        value = values.pop()
        if sys.getrefcount(value) > _OWN_REFERENCES:
            continue
        if type(value) is dict:
            values.extend([item for item in value.values() if type(item) is dict or type(item) is list])
            free_members(value)
            value.clear()
        elif type(value) is list:
            values.extend([item for item in value if type(item) is dict or type(item) is list])
            free_members(value)
            value.clear()


def use_large(make: Callable[[], Any], use: Callable[[Any], T]) -> T:
    """Return `use(make())`, and deallocate the large object that `make` returns part by part (`free_large`).

    Call it in a worker thread.

    Args:
        make: returns a new object. Parts of it that are also referenced elsewhere stay as they are.
        use: called with the object, of which it must not keep a reference.
    """
    values = [make()]
    try:
        return use(values[0])
    finally:
        free_large(values)


def free_members(container: list[Any] | dict[Any, Any] | set[Any]) -> None:
    """Empty a container that is no longer needed, some thousand members at a time if it has many.

    Python frees the members of a local variable at once when its function returns: 40 ms for 170,000 keys and tuples.
    A container of few members is left as it is.
    """
    if len(container) <= _AT_ONCE:
        return
    if isinstance(container, list):
        while container:
            del container[-_AT_ONCE:]
    else:
        remove = container.popitem if isinstance(container, dict) else container.pop
        while container:
            remove()
