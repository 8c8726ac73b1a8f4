"""How long rules take to compile, for whoever wants to know: told, since nothing here counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

COMPILED: Final[list[Callable[[float], None]]] = []
"""Called with the seconds that the rules of one schema took."""
