"""The types of the table `FUNCTIONS` that each module of this package has: the Python functions behind CEL's functions.

`registry` combines the tables. A function of CEL has a Python function for each signature, the classes of its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]
Signature: TypeAlias = tuple[type, ...]
"""The classes of a function's arguments, the receiver first; `object` accepts any value."""
Functions: TypeAlias = dict[str, list[tuple[Signature, Function]]]
"""The implementations of each CEL function, tried in order."""


def list_of(*elements: type) -> type:
    """Return a class for `isinstance` whose instances are lists by the class of their first element.

    They are empty lists, and lists whose first element is of one of the classes `elements`. Upstream checks only the
    first element too (IsAssignableRuntimeType).
    """

    class Lists(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, list) and (not value or value[0].__class__ in elements)

    return Lists("List", (), {})
