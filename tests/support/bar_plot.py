"""Horizontal bars as an SVG file, for the results of harnesses.

The same figures give the same file, byte by byte, so that it can be committed. It is readable in light and dark pages,
and its texts are texts, not outlines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

_WIDTH: Final = 760
_LEFT: Final = 4
_PLOT: Final = 600
"""The width of the axis. The figures are right of it."""
_BAR, _LINE, _GAP = 13, 18, 9
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #1b1f26; }
.title { font-weight: 600; } .small { font-size: 11px; fill: #596270; }
.grid { stroke: #d8dce2; } .reference { stroke: #1b1f26; stroke-width: 1.5; }
.range { stroke: #1b1f26; stroke-width: 1.2; } .goal { stroke: #b42318; stroke-width: 2.5; }
.s0 { fill: #1f5fd0; } .s1 { fill: #d08a2c; } .s2 { fill: #7a8699; }
@media (prefers-color-scheme: dark) {
text { fill: #e4e7ec; } .small { fill: #9aa4b2; } .grid { stroke: #343a44; } .reference, .range { stroke: #e4e7ec; }
.goal { stroke: #ff8a7a; } .s0 { fill: #6ea0ff; } .s1 { fill: #e0a040; } .s2 { fill: #8b97aa; }
}
"""


@dataclass(frozen=True)
class Bar:
    """A bar: its length, and the range of the measurements if it is known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    """The bars of one work, in the order of the series; None for one that was not measured.

    Attributes:
        goal: the value of the mark "goal"; None for none.
    """

    title: str
    bars: Sequence[Bar | None]
    goal: float | None = None


def bar_plot(title: str, series: Sequence[str], rows: Sequence[Row], reference: tuple[float, str] | None = None) -> str:
    """Return the SVG.

    Args:
        title: the title, which says what the bars are.
        series: the names of the bars of each row, for the legend; at most three.
        rows: the rows from top to bottom.
        reference: a value that is drawn as a line through all rows, and its name.
    """
    values = [v for row in rows for bar in row.bars if bar for v in (bar.value, bar.high or 0.0)]
    largest = max([*values, *(row.goal or 0.0 for row in rows), reference[0] if reference else 0.0], default=0.0)
    step = _step(largest)
    scale = _PLOT / (math.ceil(largest / step - 1e-9) * step or 1.0)
    top = 62
    bottom = top + sum(_height(row) for row in rows)
    parts = [*_grid(step, scale, top, bottom), *_legend(series, reference, rows)]
    y = top
    for row in rows:
        parts += _row(row, y, scale, reference[0] if reference else None)
        y += _height(row)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 22}" width="{_WIDTH}" role="img">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(_description(series, rows))}</desc>\n<style>{_STYLE}</style>\n"
        f"{_text(_LEFT, 16, title, 'title')}\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _step(largest: float) -> float:
    """Return the distance of the lines of the grid: 1, 2 or 5 times a power of ten, for four to ten lines."""
    power = 10 ** math.floor(math.log10(largest / 4)) if largest > 0 else 1.0
    return next(factor * power for factor in (1, 2, 5, 10) if largest / (factor * power) <= 8)


def _height(row: Row) -> int:
    return _LINE + _BAR * len(row.bars) + _GAP


def _grid(step: float, scale: float, top: int, bottom: int) -> Iterator[str]:
    for number in range(round(_PLOT / scale / step) + 1):
        x = _LEFT + number * step * scale
        yield _line("grid", x, top - 6, x, bottom)
        anchor = "start" if number == 0 else "middle"
        yield _text(x, bottom + 14, f"{number * step:g}", "small", anchor)


def _legend(series: Sequence[str], reference: tuple[float, str] | None, rows: Sequence[Row]) -> Iterator[str]:
    x = float(_LEFT)
    for number, name in enumerate(series):
        yield f'<rect class="s{number}" x="{x:.0f}" y="29" width="11" height="11"/>'
        yield _text(x + 16, 39, name)
        x += 40 + 7 * len(name)
    lines = [("goal", "goal")] if any(row.goal is not None for row in rows) else []
    for kind, name in [*lines, *([("reference", reference[1])] if reference else [])]:
        yield _line(kind, x + 5, 28, x + 5, 41)
        yield _text(x + 16, 39, name)
        x += 40 + 7 * len(name)


def _row(row: Row, y: float, scale: float, reference: float | None) -> Iterator[str]:
    yield _text(_LEFT, y + 12, row.title)
    top, bottom = y + _LINE, y + _LINE + _BAR * len(row.bars)
    for number, bar in enumerate(row.bars):
        at = top + number * _BAR
        yield _text(_LEFT + _PLOT + 12, at + 9, _figure(bar), "small")
        if bar is None:
            continue
        yield f'<rect class="s{number}" x="{_LEFT}" y="{at:.0f}" width="{bar.value * scale:.1f}" height="{_BAR - 3}"/>'
        if bar.low is not None and bar.high is not None:
            middle = at + (_BAR - 3) / 2
            yield _line("range", _LEFT + bar.low * scale, middle, _LEFT + bar.high * scale, middle)
    for kind, value in (("reference", reference), ("goal", row.goal)):
        if value is not None:
            x = _LEFT + value * scale
            yield _line(kind, x, top - 3, x, bottom)


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


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    attributes = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor != "start" else "")
    return f'<text x="{x:.1f}" y="{y:.0f}"{attributes}>{escape(text)}</text>'
