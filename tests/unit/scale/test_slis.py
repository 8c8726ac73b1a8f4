"""The latencies that a metrics page gives are those of the requests between two readings."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from scale import slis
from scale.model import Line, line_through

LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")
GET = slis.Call("", "pods", "", "GET", "resource")


class Server:
    """A page of metrics with the histogram of kube-apiserver."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._histogram = Histogram(
            "apiserver_request_sli_duration_seconds", "", LABELS, registry=self._registry, buckets=(0.05, 0.1, 0.2, 60)
        )

    def answer(self, verb: str, seconds: float, version: str = "v1") -> None:
        self._histogram.labels(verb, "", version, "pods", "", "resource", "apiserver").observe(seconds)

    def page(self) -> str:
        return generate_latest(self._registry).decode()


def test_only_the_requests_between_the_readings_count() -> None:
    server = Server()
    for _ in range(100):
        server.answer("GET", 30)
    before = slis.read(server.page())
    for seconds in [0.01] * 90 + [0.15] * 10:
        server.answer("GET", seconds)
    found = slis.between(before, slis.read(server.page()))
    assert list(found) == [GET]
    assert max(found[GET].values()) == 100
    assert slis.percentile(found[GET], 0.5) < 0.05
    assert 0.1 < slis.percentile(found[GET], 0.99) <= 0.2


def test_versions_of_a_resource_are_one_call_and_watches_are_none() -> None:
    server = Server()
    server.answer("GET", 0.01, "v1")
    server.answer("GET", 0.01, "v1beta1")
    server.answer("WATCH", 50)
    found = slis.between({}, slis.read(server.page()))
    assert {call: max(buckets.values()) for call, buckets in found.items()} == {GET: 2}


def test_calls_without_requests_in_between_are_left_out() -> None:
    server = Server()
    server.answer("GET", 0.01)
    reading = slis.read(server.page())
    assert slis.between(reading, reading) == {}


def test_a_line_goes_through_the_points() -> None:
    assert line_through([(0, 10), (1, 12), (2, 14)]) == Line(10, 2)
    assert line_through([(0, 10), (1, 30), (2, 10)]).each == pytest.approx(0)
    assert line_through([(5, 10)]) == Line(10, 0)
