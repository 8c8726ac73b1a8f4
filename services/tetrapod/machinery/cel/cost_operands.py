"""The operands from which the cost of a call is estimated, and the interface to their sizes.

The size of a value is its number of characters, bytes, elements or entries. There are two ways to know it before the
evaluation. A computed size follows from the expression, as that of a literal. A declared size is the maximum that the
type of a variable allows at the path that leads to the value, such as its maxItems.

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
    """An argument or the receiver of a call, or the elements of a list argument, for the rules that estimate costs.

    Attributes:
        node: the node; None for the elements of a list.
        type: the type.
        path: the path from a variable to the value; () if it does not come from one.
        size: the computed size; None if only the declared type may determine it (see `Sizes.size_of`).

    Upstream: AstNode.
    """

    node: Node | None
    type: CelType
    path: Path
    size: Range | None


class Sizes(Protocol):
    """The interface through which the rules of calls read and record the estimated sizes of values in an expression."""

    def size_of(self, operand: Operand) -> Range:
        """Return the computed size of an operand, else its declared size, else `UNKNOWN` (0 to the largest size)."""
        ...

    def elements(self, operand: Operand) -> Operand | None:
        """Return an operand with the type and path of a list's elements, or None if their type is unknown.

        Upstream: listElementNode.
        """
        ...

    def unite_entries(self, node: Node, first: Node, second: Node) -> None:
        """Record for `node` that its value is a list or map made of elements (or keys and values) of two other values.

        Their sizes are ranges that cover those of both. Nothing is recorded if those of either are unknown.

        Args:
            node: a conditional or an addition.
            first: its first branch or operand.
            second: its second branch or operand.
        """
        ...
