"""Tests of spans: a step is recorded as a child of the step it runs in, and not at all where nothing is traced."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tetrapod.generic.observability.tracing import spans
from tetrapod.generic.observability.tracing.report import span_document, text
from tetrapod.generic.observability.tracing.spans import (
    MOST_SPANS,
    NOTHING,
    Span,
    Trace,
    current,
    detail,
    start,
    traced,
)


@traced("work", lambda size: {"size": size})
async def work(size: int) -> int:
    with start("inside"):
        await asyncio.sleep(0)
    return size


@traced("fine work", detailed=True)
async def fine_work() -> None: ...


def names(span: Span) -> Any:
    return {child.name: names(child) for child in span.children}


async def test_a_method_is_not_wrapped_until_tracing_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_armed", False)
    monkeypatch.setattr(spans, "_methods", [])

    async def written(self: object) -> str:
        return "done"

    written.__qualname__ = "Worker.work"
    worker: Any = type("Worker", (), {"work": traced("work")(written)})
    assert worker.work is written
    spans.arm()
    with Span(Trace(), "root") as root:
        assert await worker().work() == "done"
    assert names(root) == {"work": {}}


async def test_nothing_is_recorded_where_nothing_is_traced() -> None:
    assert await work(3) == 3
    assert current() is None
    assert start("x") is NOTHING and detail("x") is NOTHING


async def test_steps_are_children_of_the_step_they_are_made_in_also_across_tasks() -> None:
    with Span(Trace(detailed=True), "root") as root:
        await asyncio.gather(work(1), asyncio.create_task(fine_work()))
    assert names(root) == {"work": {"inside": {}}, "fine work": {}}
    assert {child.name: child.attributes for child in root.children} == {"work": {"size": 1}, "fine work": {}}
    assert current() is None


async def test_details_are_left_out_of_exported_traces() -> None:
    with Span(Trace(sampled=True), "root") as root:
        await work(1)
        await fine_work()
    assert names(root) == {"work": {"inside": {}}}


async def test_an_error_is_reported_where_it_came_from_and_nowhere_else() -> None:
    root = Span(Trace(), "root")
    with pytest.raises(KeyError), root, start("outer"), start("inner"):
        raise KeyError("gone")
    outer = root.children[0]
    assert (root.error, outer.error, outer.children[0].error) == ("", "", "'gone'")


async def test_a_closed_trace_takes_no_more_steps_of_tasks_that_live_on() -> None:
    trace = Trace()
    with Span(trace, "root") as root:
        trace.closed = True
        await work(1)
    assert root.children == [] and trace.dropped == 0


async def test_the_number_of_steps_is_bounded() -> None:
    trace = Trace()
    with Span(trace, "root") as root:
        for _ in range(MOST_SPANS + 5):
            with start("x"):
                pass
    assert len(root.children) == MOST_SPANS and trace.dropped == 5


def test_a_line_of_text_has_the_step_its_duration_and_its_own_share() -> None:
    root = Span(Trace(), "root")
    root.started, root.ended = 1.0, 1.010
    outer = root.child("filter one", scope="filter")
    inner = root.child("two")
    assert isinstance(outer, Span) and isinstance(inner, Span)
    root.children = [outer]
    outer.children = [inner]
    outer.started, outer.ended, inner.started, inner.ended = 1.001, 1.009, 1.002, 1.005
    inner.set(key="/a", url="/said/above")
    outer.grafts = [{"name": "behind", "start": 0.5, "took": 1.0}]
    report = {
        "request": {"method": "GET", "uri": "/x"},
        "response": {"status": 200, "bytes": 4},
        "auditID": "id",
        "traceID": "t",
        "took": 10.0,
        "spans": span_document(root, 1.0)["spans"],
    }
    lines = text(report).splitlines()
    assert lines[0] == "GET /x"
    assert lines[5].split() == ["1.000", "8.000", "4.500", "filter", "filter", "one"]  # two and the next one overlap
    assert lines[6].split() == ["2.000", "3.000", "3.000", "two", "key=/a"]
    assert lines[7].split() == ["1.500", "1.000", "1.000", "behind"]
