"""The page and the plots show what was stored, and a run is judged by the objectives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scale import cluster_page, report
from scale.objectives import CALLS, MUTATIONS, READS, broken, worst
from scale.results import Figures, Latency, Percentiles, Result, Run, Used, read_all, write
from support.line_plot import Series, line_plot

SVG = "{http://www.w3.org/2000/svg}"
CREATE = Latency("", "pods", "", "POST", "resource", 3000, 12.0, 80.0, 95.0)
GET = Latency("", "pods", "", "GET", "resource", 3000, 1.0, 20.0)
LIST = Latency("", "pods", "", "LIST", "cluster", 10, 100.0, 900.0)
STORE = Figures(
    "store",
    1000,
    "sqlite",
    "abc",
    "2026-01-01",
    2,
    {
        "filled": 1,
        "ready": 2,
        "page": 3,
        "cached": 4,
        "listed": 0.5,
        "listed_bytes": 400_000,
        "namespace": 0.02,
        "memory": 90_000_000,
        "peak": 95_000_000,
        "empty": 80_000_000,
    },
)


def run(form: str = "sqlite", nodes: int = 100, p99: float = 80.0) -> Run:
    """Return a run in which everything was in time but perhaps the creation of pods."""
    calls = [replace(CREATE, p99_ms=p99), GET, LIST]
    return Run(
        form=form,
        nodes=nodes,
        pods=nodes * 30,
        churn=10,
        seconds=300,
        filled=40,
        commit="abc",
        date="2026-01-01",
        cores=2,
        watches=1200,
        rate=100,
        lag_ms=1,
        skipped=0,
        relists=0,
        undelivered=0,
        client=calls,
        server=[],
        delivery=Percentiles(500, 5.0, 40.0, 60.0),
        startup=None,
        use=Used(0.5, 120_000_000, 1000.0),
        store=None,
        load_cpu=0.3,
        load_memory=50_000_000,
    )


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    results: list[Result] = [run("sqlite", 100), run("kube-apiserver", 100), run("sqlite", 500), STORE]
    for result in reversed(results):
        write(result, tmp_path)
    assert [(result.form, result) for result in read_all(tmp_path)] == [
        ("kube-apiserver", results[1]),
        ("sqlite", results[0]),
        ("sqlite", results[2]),
        ("sqlite", STORE),
    ]


def test_the_worst_call_of_each_objective_is_judged() -> None:
    measured = run(p99=1500)
    assert [worst(measured.client, objective) for objective in CALLS] == [measured.client[0], GET, LIST]
    assert broken(measured) == ["POST pods: 1,500 ms"]
    assert broken(run()) == []


def test_calls_with_few_requests_are_not_judged() -> None:
    rare = replace(CREATE, count=20, p99_ms=5000)
    assert worst([rare], MUTATIONS) is None
    assert worst([GET, replace(GET, resource="nodes", count=5, p99_ms=999)], READS) == GET


def test_late_events_and_failed_requests_break_objectives() -> None:
    measured = run()
    measured.delivery = Percentiles(500, 5.0, 4000.0, 6000.0)
    measured.client[1] = replace(GET, failed=300)
    measured.undelivered = 2
    measured.skipped = 500
    assert broken(measured) == [
        "watch events: 4,000 ms",
        "300 requests failed",
        "500 requests were not sent, because the server did not keep up",
        "2 events never came",
    ]


def test_a_size_has_one_section_with_a_column_for_each_server() -> None:
    page = report.render([run("sqlite"), run("kube-apiserver", p99=1500), STORE])
    assert page.count("## 100 nodes, 3,000 pods") == 1
    assert "| figure | one process over SQLite | kube-apiserver |" in page
    assert "| writes of one object (≤ 1,000) | 80 | 1,500 |" in page
    assert "| objectives held | yes | POST pods: 1,500 ms |" in page
    assert "## A store of 1,000 small objects" in page
    assert "| memory of one object, bytes | 10,000 |" in page


def test_the_model_tells_what_a_node_costs() -> None:
    small, large = run("sqlite", 100), run("sqlite", 500)
    large.use = Used(1.3, 200_000_000, 0.0)
    page = report.render([small, large, run("kube-apiserver", 100)])
    assert "| figure | one process over SQLite |" in page
    assert "| cores without nodes | 0.30 |" in page
    assert "| cores for each 100 nodes | 0.200 |" in page
    assert "| nodes that one core serves | 350 |" in page
    assert "| memory at 5,000 nodes, MB | 1,100 |" in page


def test_a_plot_has_a_line_for_each_server() -> None:
    svg = cluster_page.draw([run("sqlite", 100, 50), run("sqlite", 500, 75), run("kube-apiserver", 100, 25)])
    lines = list(ElementTree.fromstring(svg["scale-writes.svg"]).iter(f"{SVG}polyline"))
    assert [len((line.get("points") or "").split()) for line in lines] == [2, 1]


def test_points_are_at_their_places() -> None:
    svg = ElementTree.fromstring(line_plot("t", "x", [Series("a", [(0, 0), (50, 100), (100, 50)])]))
    points = [tuple(map(float, p.split(","))) for p in next(svg.iter(f"{SVG}polyline")).attrib["points"].split()]
    highest = min(float(line.attrib["y1"]) for line in svg.iter(f"{SVG}line"))
    assert points[1][1] == highest
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0])
    assert points[0][1] - points[2][1] == pytest.approx(points[2][1] - points[1][1])


def test_the_committed_page_and_plots_are_those_of_the_results() -> None:
    """`make scale ARGS=render` writes them again."""
    results = read_all()
    assert report.PAGE.read_text() == report.render(results)
    for name, svg in report.draw(results).items():
        assert (report.IMAGES / name).read_text() == svg
