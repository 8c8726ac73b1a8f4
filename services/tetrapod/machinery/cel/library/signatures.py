"""What a library of functions is: it declares `FUNCTIONS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]
Signature: TypeAlias = tuple[type, ...]
"""The classes of a function's arguments, the receiver first; `object` takes anything."""
Functions: TypeAlias = dict[str, list[tuple[Signature, Function]]]
"""The functions behind each name of CEL, tried in order."""
