"""Replay of every scenario that was recorded from a real kube-apiserver.

`not_yet.txt` lists the scenarios that are not equal yet. It only shrinks: a listed scenario that passes fails the run.
Run it with `python -m pytest tests/contract`, or with `make contract`, which prints the share per area. `recordings/`
was given to the project; `more/` was recorded from v1.37.1 out of `scenarios/*.yaml` (`golden.py record`), for rules
that `recordings/` does not show. Over HTTP/2 `make contract-http2` replays all scenarios, and a test here some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from contract.replaying import NOT_YET, OVER_HTTP2, RECORDINGS, UNSTEADY, replay
from support.server import Server


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_scenario_answers_as_recorded(
    path: Path, server: Server, record_property: Callable[[str, object], None]
) -> None:
    listed = path.stem in NOT_YET
    differences = replay(path, server, timeout=5.0 if listed else 20.0)
    if differences and not listed:
        record_property("retried", True)
        differences = replay(path, server, timeout=30.0)  # on a busy machine a controller may be late: try once more
    if listed and not differences and path.stem not in UNSTEADY:
        pytest.fail(f"{path.stem} is equal now: take it off not_yet.txt")
    if listed and differences:
        pytest.xfail("not equal yet")
    assert not differences, "\n".join(differences)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", [path for path in RECORDINGS if path.stem in OVER_HTTP2], ids=lambda path: path.stem)
def test_scenario_answers_as_recorded_over_http_2(
    path: Path, server_of_http2: Server, record_property: Callable[[str, object], None]
) -> None:
    differences = replay(path, server_of_http2, timeout=20.0, http2=True)
    if differences:
        record_property("retried", True)
        differences = replay(path, server_of_http2, timeout=30.0, http2=True)
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("listed", [NOT_YET, OVER_HTTP2], ids=["not yet", "over HTTP/2"])
def test_lists_name_only_existing_scenarios(listed: set[str]) -> None:
    assert {path.stem for path in RECORDINGS} >= listed
