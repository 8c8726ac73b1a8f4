"""Rates and latencies of two samples of metrics."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.console.exposition import read
from tetrapod.console.traffic import GAP, HISTORY, Sample, Traffic, quantile

FLOW = 'flow_schema="s",priority_level="p"'


def page(dispatched: int, seconds: float, buckets: tuple[int, int, int] = (0, 0, 0), extra: str = "") -> str:
    prefix = "apiserver_flowcontrol_request_execution_seconds"
    return (
        "# HELP apiserver_flowcontrol_dispatched_requests_total text\n"
        "# TYPE apiserver_flowcontrol_dispatched_requests_total counter\n"
        f"apiserver_flowcontrol_dispatched_requests_total{{{FLOW}}} {dispatched}\n"
        f'{prefix}_bucket{{{FLOW},type="regular",le="0.1"}} {buckets[0]}\n'
        f'{prefix}_bucket{{{FLOW},type="regular",le="1"}} {buckets[1]}\n'
        f'{prefix}_bucket{{{FLOW},type="regular",le="+Inf"}} {buckets[2]}\n'
        f'{prefix}_sum{{{FLOW},type="regular"}} {seconds}\n'
        f'{prefix}_count{{{FLOW},type="regular"}} {buckets[2]}\n'
        f"{extra}"
    )


def states(*pages: str, seconds: float = 2.0) -> list[dict[str, Any]]:
    traffic = Traffic()
    return [traffic.add({"a": Sample(number * seconds, read(text))}) for number, text in enumerate(pages)]


def test_rates_and_latencies_are_those_of_the_time_between_two_samples() -> None:
    first, second = states(page(100, 5.0, (100, 100, 100)), page(110, 7.0, (105, 110, 110)))
    assert first["flows"][0] | {"total": 0} == {
        **dict.fromkeys(("rate", "rejected", "wait", "mean", "p50", "p99")),
        "level": "p",
        "schema": "s",
        "waiting": 0,
        "total": 0,
    }
    flow = second["flows"][0]
    assert (flow["rate"], flow["total"], flow["mean"]) == (5.0, 110, pytest.approx(0.2))
    assert flow["p50"] == pytest.approx(0.1)
    assert flow["p99"] == pytest.approx(0.1 + 0.9 * 4.9 / 5)
    assert second["levels"][0]["rate"] == 5.0 and second["levels"][0]["p99"] == flow["p99"]
    assert second["charts"]["rate"] == [{"name": "p", "values": [5.0]}]


def test_a_counter_that_became_smaller_has_begun_again() -> None:
    assert states(page(100, 0), page(4, 0))[1]["flows"][0]["rate"] == 2.0


def test_a_flow_that_is_new_counts_from_zero_and_charts_have_gaps_before_it() -> None:
    new = 'apiserver_flowcontrol_dispatched_requests_total{flow_schema="t",priority_level="q"} 6\n'
    last = states(page(1, 0), page(1, 0), page(1, 0, extra=new))[-1]
    assert [(flow["schema"], flow["rate"]) for flow in last["flows"]] == [("s", 0), ("t", 3.0)]
    assert last["charts"]["rate"] == [{"name": "p", "values": [0, 0]}, {"name": "q", "values": [None, 3.0]}]


def test_rates_and_charts_begin_again_after_a_gap() -> None:
    traffic = Traffic()
    for at in (0.0, 2.0):
        traffic.add({"a": Sample(at, read(page(round(at), 0)))})
    after = traffic.add({"a": Sample(3 + GAP, read(page(900, 0)))})
    assert after["flows"][0]["rate"] is None and after["charts"] == {"rate": [], "p99": []}
    assert traffic.add({"a": Sample(5 + GAP, read(page(910, 0)))})["flows"][0]["rate"] == 5.0


def test_the_history_of_a_chart_is_bounded() -> None:
    last = states(*(page(number, 0) for number in range(HISTORY + 5)))[-1]
    assert len(last["charts"]["rate"][0]["values"]) == HISTORY


def test_processes_are_added_up_and_caches_of_replicas_are_not() -> None:
    text = page(10, 0) + (
        'apiserver_resource_objects{group="",resource="pods"} 7\n'
        'watch_cache_capacity{group="",resource="pods"} 128\n'
        'apiserver_watch_cache_resource_version{group="",resource="pods"} 55\n'
        'apiserver_longrunning_requests{verb="WATCH",group="",resource="pods",scope="cluster",component="x"} 2\n'
        'apiserver_longrunning_requests{verb="WATCH",group="",resource="pods",scope="namespace",component="x"} 1\n'
        'apiserver_longrunning_requests{verb="CONNECT",group="",resource="pods",scope="namespace",component="x"} 9\n'
    )
    shown = Traffic().add({name: Sample(0, read(text)) for name in ("core", "core-2")})
    assert shown["flows"][0]["total"] == 20
    assert shown["caches"] == [
        {
            "group": "",
            "resource": "pods",
            "watches": 6,
            "objects": 7,
            "capacity": 128,
            "version": 55,
            "events": None,
        }
    ]


def test_verbs_count_failures_and_watches_have_no_latency() -> None:
    def text(count: int) -> str:
        return (
            f'apiserver_request_total{{verb="GET",code="200",resource="pods"}} {3 * count}\n'
            f'apiserver_request_total{{verb="GET",code="404",resource="pods"}} {count}\n'
            f'apiserver_request_total{{verb="WATCH",code="200",resource="pods"}} {count}\n'
            f'apiserver_request_duration_seconds_sum{{verb="GET"}} {count}\n'
            f'apiserver_request_duration_seconds_count{{verb="GET"}} {4 * count}\n'
            f'apiserver_request_duration_seconds_sum{{verb="WATCH"}} {600 * count}\n'
            f'apiserver_request_duration_seconds_count{{verb="WATCH"}} {count}\n'
        )

    get, watch = states(text(10), text(20))[1]["verbs"]
    assert (get["verb"], get["rate"], get["failed"], get["mean"], get["total"]) == ("GET", 20, 5, 0.25, 80)
    assert (watch["verb"], watch["rate"], watch["mean"]) == ("WATCH", 5, None)


@pytest.mark.parametrize(
    ("share", "buckets", "value"),
    [
        (0.5, [(1.0, 10.0), (2.0, 20.0), (float("inf"), 20.0)], 1.0),
        (0.75, [(1.0, 10.0), (2.0, 20.0), (float("inf"), 20.0)], 1.5),
        (0.99, [(1.0, 1.0), (float("inf"), 100.0)], 1.0),
        (0.5, [(1.0, 0.0), (float("inf"), 0.0)], None),
        (0.5, [], None),
    ],
)
def test_quantiles_are_estimated_as_by_prometheus(
    share: float, buckets: list[tuple[float, float]], value: float | None
) -> None:
    assert quantile(share, buckets) == value


def test_a_malformed_page_is_rejected() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        read('apiserver_request_total{verb="GET",code="200"} x\n')


def test_families_that_only_begin_with_a_known_name_are_ignored() -> None:
    assert read('apiserver_request_total_other{verb="GET",code="200"} 5')["apiserver_request_total"] == {}
