"""Tests of cron schedules: they are accepted or rejected as by upstream's parser, in its wording."""

import pytest

from tetrapod.core.batch.schedules import schedule_error, zone_error

BEYOND_INT64 = "9" * 20


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "*/5 0-23/2 1,15 jan-dec mon",
        "0 0 1 1 ?",
        "@hourly",
        "@every 1h30m",
        "30 4 * * 0",
        "5/10 * * * SUN",
    ],
)
def test_a_well_formed_schedule_is_accepted(schedule: str) -> None:
    assert schedule_error(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        ("hourly", "expected exactly 5 fields, found 1: [hourly]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        (
            f"{BEYOND_INT64} * * * *",
            f'failed to parse int from {BEYOND_INT64}: strconv.Atoi: parsing "{BEYOND_INT64}": value out of range',
        ),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
    ],
)
def test_a_malformed_schedule_is_reported_with_upstreams_message(schedule: str, text: str) -> None:
    assert schedule_error(schedule) == text


def test_only_zones_of_the_database_are_zones() -> None:
    assert not zone_error("Europe/Paris") and not zone_error("UTC")
    assert zone_error("Nowhere/Land") == "unknown time zone Nowhere/Land"
    assert zone_error("a..b") == "time: invalid location name"
