"""Lines through points as an SVG file: a trend, such as latency against the number of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from support.svg import document, legend, line, step_of, text

_WIDTH: Final = 760
_LEFT, _RIGHT = 56, 740
_TOP, _BOTTOM = 62, 302


@dataclass(frozen=True)
class Series:
    """A line: its name, and its points from left to right."""

    name: str
    points: Sequence[tuple[float, float]]


def line_plot(title: str, x_title: str, series: Sequence[Series]) -> str:
    """Return the SVG.

    Args:
        title: the title, which says what the vertical axis shows.
        x_title: what the horizontal axis shows.
        series: the lines; at most four.
    """
    points = [point for one in series for point in one.points]
    x_lines = _lines(max((x for x, _ in points), default=1.0))
    y_lines = _lines(max((y for _, y in points), default=1.0))

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + (_RIGHT - _LEFT) * x / x_lines[-1], _BOTTOM - (_BOTTOM - _TOP) * y / y_lines[-1]

    parts = []
    for x in x_lines:
        at, _ = place(x, 0)
        parts += [line("grid", at, _TOP, at, _BOTTOM), text(at, _BOTTOM + 16, f"{x:,g}", "small", "middle")]
    for y in y_lines:
        _, at = place(0, y)
        parts += [line("grid", _LEFT, at, _RIGHT, at), text(_LEFT - 6, at + 4, f"{y:,g}", "small", "end")]
    parts.append(text((_LEFT + _RIGHT) / 2, _BOTTOM + 34, x_title, "small", "middle"))
    for number, one in enumerate(series):
        parts += _polyline(number, [place(x, y) for x, y in one.points])
    parts += legend([one.name for one in series])
    return document(title, _description(x_title, series), _WIDTH, _BOTTOM + 44, parts)


def _lines(largest: float) -> list[float]:
    """Return where the lines of a grid are: from 0 until one is at or beyond the largest value."""
    step = step_of(largest)
    found = [0.0]
    while found[-1] < largest - 1e-9 * step or len(found) < 2:
        found.append(len(found) * step)
    return found


def _polyline(number: int, places: Sequence[tuple[float, float]]) -> Iterator[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline class="l{number}" points="{path}"/>'
    for x, y in places:
        yield f'<circle class="s{number}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'


def _description(x_title: str, series: Sequence[Series]) -> str:
    lines = (f"{one.name}: " + ", ".join(f"{y:g} at {x:g}" for x, y in one.points) for one in series)
    return f"{'; '.join(lines)}. Horizontal axis: {x_title}."
