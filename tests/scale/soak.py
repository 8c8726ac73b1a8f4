"""A run: the load of a cluster for an hour, to see whether the server grows."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.targets import Target
from scale import cluster
from scale.results import Figures, figures
from scale.usage import Sampler

SECONDS: Final = 3600
WARM: Final = 600
"""Seconds after which caches and the heap have their size."""
EVENT_TTL: Final = "5m"
"""Events would otherwise gather for an hour, and the store would grow with them."""


def run(key: str, target: Target, nodes: int, directory: Path, seconds: int = SECONDS, warm: int = WARM) -> Figures:
    """Load the server with a cluster for an hour, and return what it used and how it grew.

    Raises:
        LoadFailed: the load generator gave up.
        NotStarted: the server did not start.
    """
    target.flags = [*target.flags, f"--event-ttl={EVENT_TTL}"]
    with cluster.loaded(target, cluster.in_proportion(nodes, seconds), directory, []) as (load, out):
        load.wait_for("begin")
        descriptors = _descriptors(target.pids)
        with Sampler(target.pids) as server:
            load.wait_for("end")
        ended = _descriptors(target.pids)
        load.finish()
    steady = json.loads(out.read_text())["steady"]
    line = server.line(warm)
    return figures(
        "soak",
        nodes,
        key,
        seconds=seconds,
        warm=line.at(warm),
        end=line.at(seconds),
        slope=line.each * 3600,
        descriptors=descriptors,
        descriptors_end=ended,
        requests=steady["requests"],
        failed=steady["failures"],
        cpu=server.used().cpu,
    )


def _descriptors(pids: Sequence[int]) -> int:
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
