"""The plots of the benchmarks show the figures of the page."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import plots
from bench.measuring import Measured, Plan, Rate, Share
from bench.report import render
from support.bar_plot import Bar, Row, bar_plot

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "benchmarks.md").read_text()
SVG = "{http://www.w3.org/2000/svg}"


def bars(svg: str) -> list[tuple[str, float]]:
    """Return class and width of each bar, without the squares of the legend."""
    found = ElementTree.fromstring(svg).iter(f"{SVG}rect")
    return [(bar.attrib["class"], float(bar.attrib["width"])) for bar in found if bar.attrib["y"] != "29"]


def figures(svg: str, title: str) -> list[str]:
    """Return the figures beside the bars of a row."""
    texts = [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    at = texts.index(title)
    return texts[at + 1 : at + 3]


@pytest.mark.parametrize("name", [plots.CPU, plots.FLOODS])
def test_the_committed_plots_are_those_of_the_page(name: str) -> None:
    """`make bench ARGS=--plots` draws them again."""
    assert (plots.IMAGES / name).read_text() == plots.draw(PAGE)[name]
    assert f"](../images/{name})" in PAGE


def test_the_plot_shows_every_work_of_the_page_for_both_forms() -> None:
    svg = plots.draw(PAGE)[plots.CPU]
    section = PAGE.split("\n## ")[1]
    works = re.findall(r"^\| ([^|]+?) \| [\d,.]+ \|.*", section.split("### ")[0], re.MULTILINE)
    assert len(works) >= 14
    assert all(len(figures(svg, work)) == 2 for work in works)
    assert len(bars(svg)) == 2 * len(works)


def test_shares_and_goals_are_those_that_were_measured() -> None:
    rate = Rate(per_second=1000, p50_ms=1, p99_ms=2, cpu=78e-6, hello=10e-6)
    one = Measured("One process over SQLite", rates={"get": rate, "patch": rate})
    one.beside = {"get": Share(0.5, 0.4, 0.7, 1, 2)}
    four = Measured("Four services over etcd", rates={"get": rate})
    page = render({"embedded": one, "four": four}, Plan(only=frozenset({"get", "patch"})))
    svg = plots.draw(page)[plots.CPU]
    assert figures(svg, "GET one ConfigMap") == ["0.50 (0.40 to 0.70)", "1.00"]  # 7.8 × hello, as kube-apiserver
    assert figures(svg, "merge PATCH of one object") == ["0.13", "not measured"]
    widths = [width for _, width in bars(svg)]
    assert widths[0] / widths[1] == pytest.approx(0.5, abs=0.001)
    goals = [line for line in ElementTree.fromstring(svg).iter(f"{SVG}line") if line.attrib["class"] == "goal"]
    ends = [float(goal.attrib["x1"]) - 4 for goal in goals[1:]]  # the first belongs to the legend
    assert [end / widths[1] for end in ends] == pytest.approx([0.2, 0.5, 0.12], abs=0.002)


def test_texts_are_escaped_and_described() -> None:
    svg = bar_plot("a < b", ["one & two"], [Row("<script>", [Bar(3.0, 2.0, 4.0)]), Row("none", [None])])
    root = ElementTree.fromstring(svg)
    assert root.attrib["role"] == "img"
    assert [root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")] == ["a < b", "<script>: one & two 3.00; none: "]
    assert not list(root.iter(f"{SVG}script"))
    assert figures(svg, "<script>")[0] == "3.00 (2.00 to 4.00)" and figures(svg, "none")[0] == "not measured"


@pytest.mark.parametrize("largest", [0.0, 0.003, 0.9, 1.0, 7.99, 80.0, 12345.0])
def test_bars_fit_the_axis(largest: float) -> None:
    svg = bar_plot("t", ["s"], [Row("r", [Bar(largest)])])
    (width,) = [width for _, width in bars(svg)]
    assert 0.4 * 600 < width <= 600 or largest == 0
    ticks = [line for line in ElementTree.fromstring(svg).iter(f"{SVG}line") if line.attrib["class"] == "grid"]
    assert 2 <= len(ticks) <= 10 and float(ticks[-1].attrib["x1"]) <= 604.1
