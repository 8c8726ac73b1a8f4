"""A hook for the compilation times of CEL rules. This package has no metrics; their owner registers a callback here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

COMPILED: Final[list[Callable[[float], None]]] = []
"""Callbacks that are called with the seconds that compiling the rules of one schema took."""
