"""The short form of `make stall`: no request of an unprivileged user keeps the event loop of one process busy for long.

The limit applies to CPU time inside the server, and a case that fails is measured again, because other processes use
the host. Sizes are eighths and quarters of the largest accepted size; limits are those of the largest
(tests/stall/case.py).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stall import extended, watchers
from stall.case import BODY, WAITS, Case
from stall.cases.generated import generated
from stall.measure import Measuring, Sample
from stall.setup import prepare
from stall.short import SHORT, SHORT_OVER_HTTP2
from stall.worlds import World, one_process
from support.webhook import webhook_server

pytestmark = pytest.mark.long

_SHARE: Final = 8
"""The largest size divided by this is the smaller size measured here."""
_EXPONENT: Final = 1.6
_ATTEMPTS: Final = 3
_WORTH: Final = 0.4
"""Seconds of CPU time below which growth is not judged, because the measurement is too coarse."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with one_process(tmp_path_factory.mktemp("stall") / "world") as world, webhook_server() as webhooks:
        asyncio.run(prepare(Measuring(world, None).admin))
        asyncio.run(extended.prepare(Measuring(world, None).admin, webhooks))
        yield world


def measured(world: World, case: Case, n: int, *, http2: bool = False) -> Sample:
    """Return the attempt that kept the event loop busy for the shortest time. Attempts end when one meets the limit."""
    found: list[Sample] = []
    while len(found) < _ATTEMPTS and (not found or found[-1].caused > WAITS[case.who]):
        found.append(asyncio.run(Measuring(world, None, http2=http2).sample(case, n)))
    return min(found, key=lambda sample: sample.caused)


@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name)
def test_a_request_does_not_stall_the_server(world: World, case: Case) -> None:
    does_not_stall(world, case, http2=False)


@pytest.mark.parametrize("case", SHORT_OVER_HTTP2, ids=lambda case: case.name)
def test_a_request_over_http2_does_not_stall_the_server(world: World, case: Case) -> None:
    does_not_stall(world, case, http2=True)


def does_not_stall(world: World, case: Case, *, http2: bool) -> None:
    n = max(2, case.largest() // _SHARE)
    small = measured(world, case, n, http2=http2)
    large = measured(world, case, 2 * n, http2=http2)
    assert small.status or not http2, "the server did not answer"
    assert large.caused <= WAITS[case.who], f"{case.name}: a step of {large.caused * 1000:.0f} ms at {large.size} bytes"
    least, most = small.cpu, large.cpu
    for _ in range(_ATTEMPTS - 1):
        if not grows(least, most):
            break
        least = min(least, measured(world, case, n, http2=http2).cpu)
        most = min(most, measured(world, case, 2 * n, http2=http2).cpu)
    assert not grows(least, most), f"{case.name}: {least:.2f} s of CPU time became {most:.2f} s"


def grows(small: float, large: float) -> bool:
    """Return whether CPU time grows too much while the size doubles.

    Callers compare the least times of several attempts: a full garbage collection, or work that remains from the
    request before, can add half a second to one of them.
    """
    return large > _WORTH and large > small * 2**_EXPONENT + 0.1


@settings(
    max_examples=8,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_a_generated_request_does_not_stall_the_server(world: World, data: st.DataObject) -> None:
    case = data.draw(generated(BODY // _SHARE))
    sample = measured(world, case, case.largest())
    assert sample.caused <= WAITS[case.who], (
        f"{case.name}: a step of {sample.caused * 1000:.0f} ms at {sample.size} bytes"
    )


@pytest.mark.parametrize("form", watchers.FORMS)
def test_a_large_object_of_many_watches_does_not_stall_the_server(world: World, form: str) -> None:
    """Written to all watches in one step, an event of a megabyte kept others waiting for two milliseconds a watch."""
    watched = asyncio.run(watchers.watched(world, form, count=100))
    assert len({re.sub(rb'"\d+s"', b"", event) for event in watched.events}) == 1  # the age of the object in a Table
    assert watched.events[0].startswith(b'{"type":"MODIFIED","object":{')
    assert watched.events[0].endswith(b"}\n")
    assert (len(watched.events[0]) > watchers.SIZE) is (form in watchers.COMPLETE)
    assert watched.caused <= WAITS["user"], f"a step or lag of {watched.caused * 1000:.0f} ms"
