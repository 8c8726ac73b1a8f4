"""The rows of a trace: their own time, kinds and purposes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.console.steps import StepKind, kind_of
from tetrapod.generic.observability.tracing.report import Row, SpanDocument, rows

TIMES = st.integers(0, 10_000).map(lambda value: value / 1000)


def spans(depth: int = 3) -> st.SearchStrategy[SpanDocument]:
    fields: dict[str, st.SearchStrategy[object]] = {"name": st.just("x"), "start": TIMES, "took": TIMES}
    if depth:
        fields["spans"] = st.lists(spans(depth - 1), max_size=3)
    return st.fixed_dictionaries(fields)


@given(spans())
def test_own_parts_lie_in_the_step_and_outside_the_steps_below_it(span: SpanDocument) -> None:
    row = next(rows([span]))
    end = row.start + row.took
    previous = row.start
    for start, took in row.own_parts:
        assert previous <= start and took > 0 and start + took <= end + 1e-9
        previous = start + took
        for below in span["spans"]:
            overlap = min(start + took, below["start"] + below["took"]) - max(start, below["start"])
            assert overlap <= 1e-9
    covered = sum(  # in whole microseconds
        any(below["start"] <= at / 1000 < below["start"] + below["took"] for below in span["spans"])
        for at in range(round(row.start * 1000), round(end * 1000))
    )
    assert row.own == pytest.approx(row.took - covered / 1000, abs=0.002 * (1 + len(span["spans"])))


def test_filters_are_not_indented_and_steps_below_them_are() -> None:
    step = {"name": "Get", "start": 2, "took": 1, "spans": [{"name": "registry get", "start": 2, "took": 1}]}
    inner = {"name": "b", "filter": True, "start": 1, "took": 3, "spans": [step]}
    found = list(rows([{"name": "a", "filter": True, "start": 0, "took": 5, "spans": [inner]}]))
    assert [(row.name, row.depth, row.own) for row in found] == [
        ("a", 0, 2),
        ("b", 0, 2),
        ("Get", 1, 0),
        ("registry get", 2, 1),
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("service core", StepKind.SERVICE),
        ("admission LimitRanger", StepKind.ADMISSION),
        ("Call validating webhook", StepKind.ADMISSION),
        ("registry create", StepKind.REGISTRY),
        ("before create", StepKind.REGISTRY),
        ("Create etcd3", StepKind.STORAGE),
        ("sqlite put", StepKind.STORAGE),
        ("SerializeObject", StepKind.RESPONSE),
        ("Create", StepKind.VERB),
        ("something new", StepKind.VERB),
    ],
)
def test_the_kind_of_a_step_follows_from_its_name(name: str, kind: StepKind) -> None:
    assert kind_of(next(rows([{"name": name, "start": 0, "took": 1}]))) is kind
    assert kind_of(Row(0, name, 0, 1, [], {}, "", True, [])) is StepKind.FILTER
