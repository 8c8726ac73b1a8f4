"""The operands from which the cost of a call is estimated, and the interface to their sizes.

Upstream: cel-go checker/cost.go.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from tetrapod.machinery.cel.nodes import Node
from tetrapod.machinery.cel.sizes import Range
from tetrapod.machinery.cel.types import CelType

Path: TypeAlias = tuple[str, ...]
"""A path from a variable into its declared type. `@items`, `@indices`, `@keys` and `@values` are the contents of a list
or map.
"""


class Operand(NamedTuple):
    """An argument or receiver of a call. `node` is None for the elements of a list. Upstream: AstNode."""

    node: Node | None
    type: CelType
    path: Path
    size: Range | None
    """The computed size; None if only the declared type may determine it (see `Sizes.size_of`)."""


class Sizes(Protocol):
    """The sizes that the estimate has determined so far, as seen by the rules of calls."""

    def size_of(self, operand: Operand) -> Range:
        """Return the computed size of an operand, else its declared size, else `UNKNOWN`."""
        ...

    def elements(self, operand: Operand) -> Operand | None:
        """Return an operand for the elements of a list, or None if their type is unknown. Upstream: listElementNode."""
        ...

    def unite_entries(self, node: Node, first: Node, second: Node) -> None:
        """Record the entry sizes of a node whose value may contain entries of two other nodes.

        The sizes are ranges that cover those of both. Nothing is recorded if the entry sizes of either are unknown.
        """
        ...
