"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from scale.forms import TITLES


class OfForm(Protocol):
    """A result of one server."""

    @property
    def form(self) -> str: ...


R = TypeVar("R", bound=OfForm)
Row = tuple[str, Callable[[R], str]]
"""The first cell of a line, and the function that gives the cell of a result."""


def table(title: str, results: Sequence[R], rows: Iterable[Row[R]]) -> str:
    """Return a table with a column for each server, in the order of `TITLES`.

    Args:
        title: the head of the first column.
        results: the results; at most one of each server.
        rows: the lines.
    """
    columns = [result for form in TITLES for result in results if result.form == form]
    lines = [[title, *(TITLES[result.form] for result in columns)], ["---"] * (1 + len(columns))]
    lines += [[name, *map(value, columns)] for name, value in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
