"""The short form of `make soak`: no process grows with the requests that it serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import uvloop

from soak.report import render
from soak.run import run
from soak.settings import Settings
from soak.worlds import WORLDS

COARSE: dict[str, Any] = {"memory_floor": 32.0, "bytes_per_request": 4000.0}
"""Memory has a high limit, because caches fill during the first minute. Live objects have the limits of a long run,
except for connections between services, which stay open for a minute.
"""


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("form", "settings"),
    [
        ("one-process", Settings(seconds=25, warm_up=8, interval=2, **COARSE)),
        (
            "four-services",
            Settings(seconds=50, warm_up=15, interval=3, connection_floor=400, file_floor=200, **COARSE),
        ),
    ],
)
def test_no_process_grows_with_the_requests_that_it_has_served(form: str, settings: Settings, tmp_path: Path) -> None:
    with WORLDS[form](tmp_path) as world:
        result = uvloop.run(run(form, world, settings))
    assert not result.failures, render(result)
