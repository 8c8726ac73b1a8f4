"""The parts of plots as SVG files, for the results of harnesses.

The same figures give the same file, byte by byte, so that it can be committed. It is readable in light and dark pages,
and its texts are texts, not outlines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #1b1f26; }
.title { font-weight: 600; } .small { font-size: 11px; fill: #596270; }
.grid { stroke: #d8dce2; } .reference { stroke: #1b1f26; stroke-width: 1.5; }
.range { stroke: #1b1f26; stroke-width: 1.2; } .goal { stroke: #b42318; stroke-width: 2.5; }
.s0 { fill: #1f5fd0; } .s1 { fill: #d08a2c; } .s2 { fill: #7a8699; } .s3 { fill: #2c8f6b; }
polyline { fill: none; stroke-width: 2; }
.l0 { stroke: #1f5fd0; } .l1 { stroke: #d08a2c; } .l2 { stroke: #7a8699; } .l3 { stroke: #2c8f6b; }
@media (prefers-color-scheme: dark) {
text { fill: #e4e7ec; } .small { fill: #9aa4b2; } .grid { stroke: #343a44; } .reference, .range { stroke: #e4e7ec; }
.goal { stroke: #ff8a7a; } .s0 { fill: #6ea0ff; } .s1 { fill: #e0a040; } .s2 { fill: #8b97aa; } .s3 { fill: #58c79c; }
.l0 { stroke: #6ea0ff; } .l1 { stroke: #e0a040; } .l2 { stroke: #8b97aa; } .l3 { stroke: #58c79c; }
}
"""


def document(title: str, description: str, width: int, height: float, parts: Iterable[str]) -> str:
    """Return the file.

    Args:
        title: the title above the plot.
        description: all figures as a text, for readers who do not see the picture.
        width: the width in pixels.
        height: the height in pixels.
        parts: the elements of the plot.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>\n<style>{_STYLE}</style>\n"
        f"{text(4, 16, title, 'title')}\n" + "\n".join(parts) + "\n</svg>\n"
    )


def step_of(largest: float) -> float:
    """Return the distance of the lines of a grid: 1, 2 or 5 times a power of ten, for four to ten lines."""
    power = 10 ** math.floor(math.log10(largest / 4)) if largest > 0 else 1.0
    return next(factor * power for factor in (1, 2, 5, 10) if largest / (factor * power) <= 8)


def legend(series: Sequence[str], marks: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
    """Return the elements of a legend.

    Args:
        series: the names of the series, whose classes are s0, s1, ….
        marks: the classes and names of lines.
    """
    x = 4.0
    for number, name in enumerate(series):
        yield f'<rect class="s{number}" x="{x:.0f}" y="29" width="11" height="11"/>'
        yield text(x + 16, 39, name)
        x += 40 + 7 * len(name)
    for kind, name in marks:
        yield line(kind, x + 5, 28, x + 5, 41)
        yield text(x + 16, 39, name)
        x += 40 + 7 * len(name)


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line with the class `kind`."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    """Return a text with the class `kind`, which begins, ends or has its middle at `x`."""
    attributes = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor != "start" else "")
    return f'<text x="{x:.1f}" y="{y:.0f}"{attributes}>{escape(content)}</text>'
