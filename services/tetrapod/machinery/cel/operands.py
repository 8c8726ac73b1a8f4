"""`Operand`: what the cost of a call is estimated from, and `Sizes`, what is known of operands. Upstream: cel-go checker/cost.go."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from tetrapod.machinery.cel.nodes import Node
from tetrapod.machinery.cel.sizes import Range
from tetrapod.machinery.cel.types import CelType

Path: TypeAlias = tuple[str, ...]
"""From a variable into its declared type; `@items`, `@keys` and `@values` are what a list or map has in it."""


class Operand(NamedTuple):
    """Upstream: AstNode. `node` is None for the elements of a list."""

    node: Node | None
    type: CelType
    path: Path
    size: Range | None
    """As computed; None where only the declared type may know (`Sizes.size_of`)."""


class Sizes(Protocol):
    """The estimate as far as it has come, as the rules of calls see it."""

    def size_of(self, operand: Operand) -> Range:
        """Computed, declared, or unknown."""
        ...

    def elements(self, operand: Operand) -> Operand | None:
        """The elements of a list as an operand (upstream: listElementNode)."""
        ...

    def unite_entries(self, node: Node, first: Node, second: Node) -> None:
        """A node has the entries of two others."""
        ...
