"""Freeing of large objects, without keeping other threads from running."""

from __future__ import annotations

import sys
from typing import Any, Final

_OWN_REFERENCES: Final = 2
"""References to a value that only one local variable holds: the variable, and the argument of `sys.getrefcount`."""


def free_large(values: list[Any]) -> None:
    """Free large objects part by part, so that other threads can run in between. Call it in a worker thread.

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
