"""Horizontal bars as an SVG file, for the results of harnesses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from support.svg import document, legend, line, step_of, text

_WIDTH: Final = 760
_LEFT: Final = 4
_PLOT: Final = 600
"""The width of the axis. The figures are right of it."""
_BAR, _LINE, _GAP = 13, 18, 9


@dataclass(frozen=True)
class Bar:
    """A bar: its length, and, if they are known, the range of the measurements and the value of its mark "goal"."""

    value: float
    low: float | None = None
    high: float | None = None
    goal: float | None = None


@dataclass(frozen=True)
class Row:
    """The bars of one work, in the order of the series; None for one that was not measured."""

    title: str
    bars: Sequence[Bar | None]


def bar_plot(title: str, series: Sequence[str], rows: Sequence[Row], reference: tuple[float, str] | None = None) -> str:
    """Return the SVG.

    Args:
        title: the title, which says what the bars are.
        series: the names of the bars of each row, for the legend; at most three.
        rows: the rows from top to bottom.
        reference: a value that is drawn as a line through all rows, and its name.
    """
    bars = [bar for row in rows for bar in row.bars if bar is not None]
    values = [value for bar in bars for value in (bar.value, bar.high or 0.0, bar.goal or 0.0)]
    largest = max([*values, reference[0] if reference else 0.0], default=0.0)
    step = step_of(largest)
    scale = _PLOT / (math.ceil(largest / step - 1e-9) * step or 1.0)
    top = 62
    bottom = top + sum(_height(row) for row in rows)
    marks = [("goal", "goal")] if any(bar.goal is not None for bar in bars) else []
    marks += [("reference", reference[1])] if reference else []
    parts = [*_grid(step, scale, top, bottom), *legend(series, marks)]
    y = top
    for row in rows:
        parts += _row(row, y, scale, reference[0] if reference else None)
        y += _height(row)
    return document(title, _description(series, rows), _WIDTH, bottom + 22, parts)


def _height(row: Row) -> int:
    return _LINE + _BAR * len(row.bars) + _GAP


def _grid(step: float, scale: float, top: int, bottom: int) -> Iterator[str]:
    for number in range(round(_PLOT / scale / step) + 1):
        x = _LEFT + number * step * scale
        yield line("grid", x, top - 6, x, bottom)
        anchor = "start" if number == 0 else "middle"
        yield text(x, bottom + 14, f"{number * step:g}", "small", anchor)


def _row(row: Row, y: float, scale: float, reference: float | None) -> Iterator[str]:
    yield text(_LEFT, y + 12, row.title)
    top, bottom = y + _LINE, y + _LINE + _BAR * len(row.bars)
    for number, bar in enumerate(row.bars):
        at = top + number * _BAR
        yield text(_LEFT + _PLOT + 12, at + 9, _figure(bar), "small")
        if bar is None:
            continue
        yield f'<rect class="s{number}" x="{_LEFT}" y="{at:.0f}" width="{bar.value * scale:.1f}" height="{_BAR - 3}"/>'
        if bar.low is not None and bar.high is not None:
            middle = at + (_BAR - 3) / 2
            yield line("range", _LEFT + bar.low * scale, middle, _LEFT + bar.high * scale, middle)
        if bar.goal is not None:
            yield line("goal", _LEFT + bar.goal * scale, at - 1, _LEFT + bar.goal * scale, at + _BAR - 2)
    if reference is not None:
        yield line("reference", _LEFT + reference * scale, top - 3, _LEFT + reference * scale, bottom)


def _figure(bar: Bar | None) -> str:
    if bar is None:
        return "not measured"
    return f"{bar.value:.2f}" if bar.low is None else f"{bar.value:.2f} ({bar.low:.2f} to {bar.high:.2f})"


def _description(series: Sequence[str], rows: Sequence[Row]) -> str:
    """Return all figures as a text, for readers who do not see the picture."""
    return "; ".join(
        f"{row.title}: "
        + ", ".join(f"{name} {bar.value:.2f}" for name, bar in zip(series, row.bars, strict=True) if bar is not None)
        for row in rows
    )
