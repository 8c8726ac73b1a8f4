"""A run: many idle watches, of which some receive an event each second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from bench import processes
from bench.targets import Target
from scale import generator
from scale.results import Figures, figures

MATCHING: Final = 100
SECONDS: Final = 30
_MS: Final = 1000


def run(key: str, target: Target, count: int, directory: Path) -> Figures:
    """Open the watches, write while they are open, and return what was measured.

    Raises:
        LoadFailed: the load generator gave up.
        NotStarted: the server did not start.
    """
    target.fresh()
    target.start()
    processes.settle(target.pids)
    empty = sum(map(processes.resident, target.pids))
    out = directory / "result.json"
    flags: list[str | Path] = [
        "--count",
        str(count),
        "--matching",
        str(MATCHING),
        "--hold",
        f"{SECONDS}s",
        "--out",
        out,
    ]
    with generator.running(target.url, "watches", flags) as load:
        opened = load.wait_for("open")["seconds"]
        load.wait_for("begin")
        cpu = processes.cpu_of(target.pids)
        load.wait_for("end")
        cpu = processes.cpu_of(target.pids) - cpu
        memory = sum(map(processes.resident, target.pids))
        load.finish()
    delivery = json.loads(out.read_text())["delivery"]["from_sent"]
    return figures(
        "watches",
        count,
        key,
        opened=opened,
        p50=delivery["p50_ms"] / _MS,
        p99=delivery["p99_ms"] / _MS,
        cpu=cpu / SECONDS,
        memory=memory,
        empty=empty,
    )
