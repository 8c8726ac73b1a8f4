"""Tests of the soak test's verdict: growth is detected by a robust fit, and only if it exceeds the noise."""

from __future__ import annotations

import random

import pytest

from soak.samples import Sample
from soak.settings import Settings
from soak.verdict import growths, judged, slope

MIB = 1 << 20
REQUEST = "tetrapod.generic.http.request.Request"


def samples(bytes_per_request: float = 0.0, requests_kept: float = 0.0, files_kept: float = 0.0) -> list[Sample]:
    """Thirty samples of a run of 5 minutes and 30,000 requests, with noise of the size that was measured and two
    outliers.
    """
    draw = random.Random(7)
    made = []
    for number in range(30):
        requests = 1000 * number
        noise = draw.gauss(0, MIB / 2) + (20 * MIB if number in (12, 21) else 0)
        memory = int(100 * MIB + bytes_per_request * requests + noise)
        objects = {REQUEST: int(3 + requests_kept * requests), "builtins.dict": 5000}
        made.append(Sample(10.0 * number, requests, memory, int(40 + files_kept * requests), objects))
    return made


def failed(**grown: float) -> set[str]:
    settings = Settings()
    return {growth.name for growth in growths(judged(samples(**grown), settings), settings) if growth.failed}


def test_a_process_that_does_not_grow_passes() -> None:
    assert failed() == set()


@pytest.mark.parametrize(
    ("grown", "names"),
    [
        ({"bytes_per_request": 3000.0}, {"memory"}),
        ({"bytes_per_request": 900.0}, {"memory"}),
        ({"requests_kept": 1.0}, {"requests"}),
        ({"requests_kept": 0.01}, {"requests"}),
        ({"files_kept": 0.01}, {"files"}),
    ],
)
def test_growth_is_found(grown: dict[str, float], names: set[str]) -> None:
    assert failed(**grown) == names


def test_the_slope_of_a_line_with_outliers_is_that_of_the_line() -> None:
    points = [(x, 2.0 * x) for x in range(20)]
    points[3], points[11] = (3, 500.0), (11, -500.0)
    assert slope(points) == 2.0


def test_too_few_samples_are_rejected() -> None:
    with pytest.raises(ValueError, match="4 samples after the warm-up"):
        judged(samples()[:16], Settings())


def test_settings_are_read_from_the_environment() -> None:
    settings = Settings.of({"SOAK_SECONDS": "600", "SOAK_WORKERS": "4"})
    assert (settings.seconds, settings.warm_up, settings.workers) == (600.0, 240.0, 4)
