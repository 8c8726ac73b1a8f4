"""What a library of functions is: it declares `FUNCTIONS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]
Signature: TypeAlias = tuple[type, ...]
"""The classes of a function's arguments, the receiver first; `object` takes anything."""
Functions: TypeAlias = dict[str, list[tuple[Signature, Function]]]
"""The functions behind each name of CEL, tried in order."""


def list_of(*elements: type) -> type:
    """Lists of one of these classes, and empty ones. Upstream (IsAssignableRuntimeType) looks at the first element only."""

    class Lists(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, list) and (not value or value[0].__class__ in elements)

    return Lists("List", (), {})
