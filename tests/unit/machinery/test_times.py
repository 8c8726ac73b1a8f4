"""Tests of durations, ages, timestamps, percentages and the order of versions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery import timestamps, version_order
from tetrapod.machinery.golang import durations


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (3 * 3600, "3h"),
        (7.5 * 3600, "7h30m"),
        (47 * 3600, "47h"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (731 * 86400, "2y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_ages_are_shown_as_kubectl_shows_them(seconds: float, shown: str) -> None:
    assert durations.human_duration(seconds) == shown


@given(st.integers(-(2**63), 2**63 - 1))
def test_durations_come_back(nanoseconds: int) -> None:
    assert durations.parse_nanoseconds(durations.format_nanoseconds(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("100", 'time: missing unit in duration "100"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
        (".s", 'time: invalid duration ".s"'),
    ],
)
def test_malformed_durations_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        durations.parse_duration(text)
    assert str(raised.value) == message


def test_durations_are_parsed_and_formatted_as_in_go() -> None:
    assert durations.parse_duration("1h30m") == 5400
    assert durations.format_duration(1.5) == "1.5s"
    assert durations.format_duration(0.25) == "250ms"
    assert durations.format_duration(0.00025) == "250µs"
    assert durations.format_duration(3661.5) == "1h1m1.5s"
    assert durations.format_duration(59.99999999999) == "1m0s"


def test_times_are_stored_in_utc_and_whole_seconds() -> None:
    assert timestamps.format_time(timestamps.parse("2020-01-01T00:00:00.9+02:00")) == "2019-12-31T22:00:00Z"
    assert (
        timestamps.format_micro(timestamps.parse_micro("2020-01-01T00:00:00.123456Z")) == "2020-01-01T00:00:00.123456Z"
    )


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_come_back(moment: datetime) -> None:
    assert timestamps.parse(timestamps.format_time(moment)) == moment.replace(microsecond=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yesterday", 'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"'),
        ("2020-13-01T00:00:00Z", 'parsing time "2020-13-01T00:00:00Z": month out of range'),
        ("2021-02-29T00:00:00Z", 'parsing time "2021-02-29T00:00:00Z": day out of range'),
        ("2020-01-01T24:00:00Z", 'parsing time "2020-01-01T24:00:00Z": hour out of range'),
        ("2020-01-01T00:00:60Z", 'parsing time "2020-01-01T00:00:60Z": second out of range'),
    ],
)
def test_malformed_times_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        timestamps.parse(text)
    assert str(raised.value) == message


def test_a_micro_time_needs_exactly_six_digits() -> None:
    with pytest.raises(ValueError, match=r'cannot parse "Z" as "\.000000"'):
        timestamps.parse_micro("2020-01-01T00:00:00Z")
    with pytest.raises(ValueError, match=r'cannot parse "7Z" as "Z07:00"'):
        timestamps.parse_micro("2020-01-01T00:00:00.1234567Z")


def test_versions_in_order_of_preference() -> None:
    mixed = ["v1", "v10", "v2beta1", "v11alpha1", "foo1", "v1beta2", "v2", "foo10", "v3beta1"]
    preferred = ["v10", "v2", "v1", "v3beta1", "v2beta1", "v1beta2", "v11alpha1", "foo1", "foo10"]
    assert sorted(mixed, key=version_order.priority_key) == preferred
