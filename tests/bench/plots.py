"""The plots of docs/reference/benchmarks.md, drawn from the tables of that page.

The page is the only record of the results. `make bench` writes both, and `make bench ARGS=--plots` draws again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.works import QUANTITIES, WORKS
from support.bar_plot import Bar, Row, bar_plot

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
CPU, FLOODS = "benchmarks-cpu.svg", "benchmarks-floods.svg"
_FORMS: Final = ("One process over SQLite", "Four services over etcd")
_SERIES: Final = ("one process", "four services")
_REAL: Final = "kube-apiserver"
_RANGE: Final = re.compile(r"([\d.,]+) \(([\d.,]+) to ([\d.,]+)\)")
_NUMBER: Final = re.compile(r"[\d.,]+")
Cells = dict[str, str]
"""The cells of a line of a table, by the heading of their column."""


def write(page: str, directory: Path = IMAGES) -> None:
    """Draw the plots of a page into files."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in draw(page).items():
        (directory / name).write_text(text)


def draw(page: str) -> dict[str, str]:
    """Return the plots of a page by the names of their files."""
    forms = [_lines(page, form) for form in _FORMS]
    works = [_work(work.title, [form.get(work.title) for form in forms]) for work in WORKS]
    floods = [q for q in QUANTITIES if q.key.startswith("flood-") and "as a multiple" in q.title]
    quantities = [_quantity(q.title, [form.get(q.title) for form in forms]) for q in floods]
    return {
        CPU: bar_plot(
            "CPU time of Tetrapod, as a share of kube-apiserver's (less is better)",
            _SERIES,
            [row for row in works if row is not None],
            (1.0, _REAL),
        ),
        FLOODS: bar_plot(
            "99th percentile of one user's GETs during another's flood, as a multiple (less is better)",
            (*_SERIES, _REAL),
            [row for row in quantities if row is not None],
        ),
    }


def _lines(page: str, section: str) -> dict[str, Cells]:
    """Return the lines of all tables in a section, by their first cells."""
    found: dict[str, Cells] = {}
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    head: Sequence[str] = ()
    for line in text.splitlines():
        if not line.startswith("| "):
            head = ()
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not head:
            head = cells
        elif not cells[0].startswith("---"):
            found[cells[0]] = dict(zip(head, cells, strict=True))
    return found


def _work(title: str, forms: list[Cells | None]) -> Row | None:
    """Return the row of a work, with the shares and their goals. None if no form was measured."""
    bars = [_share(cells) for cells in forms]
    return Row(title, bars) if any(bar is not None for bar in bars) else None


def _share(cells: Cells | None) -> Bar | None:
    """Return the share that was measured beside kube-apiserver, with its range, or else the one of the tables."""
    if cells is None:
        return None
    goal = _number(cells.get("goal", ""))
    if match := _RANGE.fullmatch(cells.get("beside it", "")):
        value, low, high = (float(part.replace(",", "")) for part in match.groups())
        return Bar(value, low, high, goal)
    share = _number(cells.get("of it", ""))
    return None if share is None else Bar(share, goal=goal)


def _quantity(title: str, forms: list[Cells | None]) -> Row | None:
    """Return the row of a quantity with the figure of kube-apiserver. None if no form was measured."""
    measured = [cells for cells in forms if cells is not None]
    if not measured:
        return None
    figures = [
        (None, None) if cells is None else (_number(cells["measured"]), _number(cells["goal"])) for cells in forms
    ]
    figures.append((_number(measured[0][_REAL]), None))
    short = title.partition("flood of ")[2].removesuffix(", as a multiple")
    return Row(f"flood of {short}", [None if value is None else Bar(value, goal=goal) for value, goal in figures])


def _number(text: str) -> float | None:
    match = _NUMBER.search(text)
    return None if match is None or text.startswith("not measured") else float(match[0].replace(",", ""))
