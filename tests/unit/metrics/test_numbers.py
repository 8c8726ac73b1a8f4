"""Tests of metrics that record many observations in one step: the counts are complete, and sums stay within the values'
bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.flowcontrol.utilization import MOST_STATES, Limits, Utilization
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.metrics.metric import FAMILIES, Metric
from tetrapod.generic.metrics.registry import reset
from tetrapod.generic.metrics.summaries import Summary
from tetrapod.generic.observability.exposition.text import render
from tetrapod.generic.storage.cacher.counters import CacheCounters
from tetrapod.generic.storage.cacher.window import FEWEST, Change, Window

BUCKETS = (0.1, 0.5, 1.0, 5.0)
_moments = st.floats(0, 10, allow_nan=False)


@pytest.fixture
def isolated() -> Iterator[list[Metric]]:
    """A registry for the metrics of a test."""
    before = len(FAMILIES)
    yield FAMILIES
    del FAMILIES[before:]


def _histogram() -> Histogram:
    found = Histogram("test_seconds", "Of a test.", (), BUCKETS)
    FAMILIES.remove(found)
    return found


@given(_moments, _moments, st.integers(1, 500))
def test_values_that_are_spread_are_as_many_as_they_are_and_lie_between_their_bounds(
    one: float, other: float, times: int
) -> None:
    least, most = sorted((one, other))
    histogram = _histogram()
    row = histogram.row(())
    histogram.spread(row, least, most, times)
    assert sum(row[:-1]) == times
    for index, count in enumerate(row[:-1]):
        low = BUCKETS[index - 1] if index else 0.0
        high = BUCKETS[index] if index < len(BUCKETS) else float("inf")
        assert not count or (high >= least and low <= most)
    assert times * least - 1e-9 <= row[-1] <= times * most + 1e-9


@given(st.lists(_moments, min_size=1, max_size=50))
def test_one_value_is_spread_as_it_is_observed(values: list[float]) -> None:
    spread, observed = _histogram(), _histogram()
    for value in values:
        spread.spread(spread.row(()), 0.0, value, 1)
        observed.observe((), value)
    assert spread.values == observed.values


@given(st.lists(_moments, min_size=1, max_size=100))
def test_a_summary_has_quantiles_among_its_values_in_order(values: list[float]) -> None:
    summary = Summary("test_summary", "Of a test.", ())
    FAMILIES.remove(summary)
    for value in values:
        summary.observe((), value)
    *quantiles, total, count = [value for _, _, value in summary.samples()]
    assert quantiles == sorted(quantiles) and set(quantiles) <= set(values)
    assert total == pytest.approx(sum(values))
    assert count == len(values)


@given(st.dictionaries(st.tuples(*[st.integers(0, 20)] * 4), st.floats(0.001, 100), max_size=30), st.integers(0, 30))
def test_time_is_spent_in_some_state_whenever_limits_change(
    spent: dict[tuple[int, int, int, int], float], seats: int
) -> None:
    utilization = Utilization()
    limits = Limits(seats, seats, 50)
    for state, seconds in spent.items():
        utilization.spent[state] = seconds
        utilization.aggregate(limits)
    for row in utilization.rows(limits):
        assert sum(row[:-1]) == pytest.approx(sum(spent.values()) * 1e9, abs=len(spent))


def test_states_are_summed_up_before_there_are_too_many() -> None:
    utilization, limits = Utilization(), Limits(10, 10, 50)
    for number in range(3 * MOST_STATES):
        if not utilization.spend((0, number, 0, number), 1.0):
            utilization.aggregate(limits)
        assert len(utilization.spent) <= MOST_STATES
    assert [sum(row[:-1]) for row in utilization.rows(limits)] == [3 * MOST_STATES * 1e9] * 4


def test_the_capacity_of_a_window_doubles_when_it_is_full() -> None:
    counters = CacheCounters(("", "things"))
    window = Window(0, counters=counters)
    for revision in range(1, 2 * FEWEST + 2):
        window.append(Change("a", None, None, revision))
    assert (window.capacity, counters.capacity_increases, counters.capacity_decreases) == (4 * FEWEST, 2, 0)


def test_bounds_are_written_as_go_writes_them(isolated: list[Metric]) -> None:
    sizes = Histogram("test_sizes", "Of a test.", (), (5e-06, 0.0001, 1, 64.0, 262144, 1e6, 1048576.0, 16777216, 1e9))
    sizes.observe((), 3)
    written = [
        line.partition('le="')[2].partition('"')[0]
        for line in render([sizes]).decode().splitlines()
        if "_bucket" in line
    ]
    assert written == [
        "5e-06",
        "0.0001",
        "1",
        "64",
        "262144",
        "1e+06",
        "1.048576e+06",
        "1.6777216e+07",
        "1e+09",
        "+Inf",
    ]


def test_a_row_is_one_number_with_what_is_added_and_is_not_shown_before_it_counts(isolated: list[Metric]) -> None:
    counter = Counter("test_total", "Of a test.", ("of",))
    row = counter.row(("a",))
    assert list(counter.samples()) == []
    row[0] += 2
    counter.add(("a",))
    counter.add(("b",))
    assert {labels["of"]: value for _, labels, value in counter.samples()} == {"a": 3, "b": 1}


def test_rows_that_callers_keep_still_count_after_a_reset(isolated: list[Metric]) -> None:
    counter, histogram = (
        Counter("test_total", "Of a test.", ("of",)),
        Histogram("test_seconds", "Of a test.", ("of",), BUCKETS),
    )
    counted, observed = counter.row(("a",)), histogram.row(("a",))
    counted[0] += 5
    histogram.count(observed, 0.3)
    reset()
    assert list(counter.samples()) == list(histogram.samples()) == []
    counted[0] += 1
    histogram.count(observed, 0.3)
    assert [value for _, _, value in counter.samples()] == [1]
    assert next(value for name, _, value in histogram.samples() if name == "test_seconds_count") == 1
