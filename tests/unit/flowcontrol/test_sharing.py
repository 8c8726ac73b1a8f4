"""Tests of how seats are divided and which queues a flow is assigned. Both are pure arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.flowcontrol.allocation import Claim, allocate, round_seats
from tetrapod.generic.flowcontrol.integrator import Integrator
from tetrapod.generic.flowcontrol.retry_after import RetryAfter
from tetrapod.generic.flowcontrol.shuffle_sharding import deal, flow_hash


@given(st.integers(0, 2**64 - 1), st.integers(1, 128), st.data())
def test_a_shuffle_sharding_hand_has_distinct_queues(value: int, deck: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, min(deck, 15)))
    hand = deal(value, deck, size)
    assert len(set(hand)) == size
    assert all(0 <= card < deck for card in hand)


def test_all_queues_are_selected_equally_often() -> None:
    counts = [0] * 8
    for value in range(8 * 7 * 6):
        for card in deal(value, 8, 3):
            counts[card] += 1
    assert len(set(counts)) == 1


def test_a_flow_is_reported_by_its_schema_and_its_distinguisher() -> None:
    assert flow_hash("a", "bc") != flow_hash("ab", "c")
    assert flow_hash("a", "b") == flow_hash("a", "b") < 2**64


def test_an_idle_kube_apiserver_divides_600_seats_as_the_real_one_says_in_its_metrics() -> None:
    """Lower bounds, upper bounds and current limits read from v1.37.1 with its own configuration."""
    levels = {
        "catch-all": (13, 613, 30),
        "global-default": (24, 649, 56),
        "leader-election": (25, 625, 58),
        "node-high": (73, 698, 170),
        "system": (50, 674, 117),
        "workload-high": (49, 698, 114),
        "workload-low": (24, 845, 56),
    }
    seats, fair = allocate(602, [Claim(lower, lower, upper) for lower, upper, _ in levels.values()])
    assert [round(s) for s in seats] == [current for _, _, current in levels.values()]
    assert fair == pytest.approx(2.3333333333333335)


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=8), st.floats(0, 1)
)
def test_seats_are_all_given_out_within_bounds_and_in_one_proportion(
    rows: list[tuple[float, float, float]], share: float
) -> None:
    claims = [Claim(lower + more, lower, lower + width) for lower, more, width in rows]
    low, high = sum(c.lower for c in claims), sum(c.upper for c in claims)
    total = int(low + (high - low) * share)
    if total < low or total > high:
        return
    seats, fair = allocate(total, claims)
    assert sum(seats) == pytest.approx(total, abs=1e-3)
    for got, claim in zip(seats, claims, strict=True):
        assert claim.lower - 1e-6 <= got <= claim.upper + 1e-6
        if claim.lower + 1e-3 < got < claim.upper - 1e-3:
            assert got == pytest.approx(fair * max(claim.target, 0.001), rel=1e-3, abs=1e-3)


def test_contradictory_bounds_are_rejected() -> None:
    with pytest.raises(ValueError, match="contradicts"):
        allocate(5, [Claim(1, 2, 3)])
    with pytest.raises(ValueError, match="not within"):
        allocate(10, [Claim(1, 1, 3)])


def test_a_demand_is_averaged_over_time() -> None:
    demand = Integrator()
    demand.add(4, 3.0)
    demand.add(0, 1.0)
    demand.add(5, 0.0)
    seen = demand.reset()
    assert (seen.average, seen.highest, seen.duration) == (3.0, 5.0, 4.0)
    demand.add(0, 1.0)
    assert demand.reset().highest == 0


def test_clients_are_reported_to_wait_longer_while_many_are_rejected_and_less_when_few_are() -> None:
    now = 100.0
    retry = RetryAfter(lambda: now)
    for _ in range(4):
        for _ in range(40):
            retry.count_rejection()
        now += 1
    assert retry.seconds == 4
    for _ in range(10):
        now += 5
        retry.count_rejection()
    assert retry.seconds == 1


@pytest.mark.parametrize(
    ("number", "rounded"), [(0.0, 0), (0.49999999999999994, 0), (0.5, 1), (1.5, 2), (2.4, 2), (2.5, 3)]
)
def test_seats_are_rounded_as_go_does(number: float, rounded: int) -> None:
    assert round_seats(number) == rounded
