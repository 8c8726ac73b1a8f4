"""The short form of `make chaos`, with a fixed seed: no data is lost during faults, and the checker finds planted
bugs.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.faults import cables, certificates, etcds, latency, processes, replicas
from chaos.faults.base import Fault
from chaos.planted import BUGS
from chaos.run import Result, Run
from chaos.worlds import FourServices, World, embedded, four_services
from support.disks import STRACE
from support.network import namespaces_allowed
from support.services import NAMES

SEED = 7


def run(world: World, faults: list[Fault], directory: Path, operations: int = 0, *, http2: bool = False) -> Result:
    load = Run(world, SEED, pause=1.0, http2=http2)
    try:
        return asyncio.run(load.through(faults, operations=operations))
    finally:
        load.history.dump(directory / "history.jsonl")


def one_of_each(world: FourServices) -> list[Fault]:
    faults: list[Fault] = [
        processes.KillService(world, "core"),
        etcds.KillMembers(world, etcds.leader(world), 1.0),
        etcds.Compaction(world),
        processes.KillService(world, "aggregator"),
        etcds.PauseMembers(etcds.follower(world, random.Random(SEED)), 1.0),
        processes.KillRedis(world),
        etcds.MissedCompaction(world, "extensions"),
        certificates.Expire(world, world.services.keys, hold=1.0),
    ]
    if STRACE is not None:
        faults.append(latency.SlowDisks(world, lambda: 0.4, hold=1.0))
    if namespaces_allowed():
        faults.append(cables.Cut(world, lambda: [("aggregator", "core")], hold=1.0))
    return faults


@pytest.mark.timeout(300)
@pytest.mark.parametrize("http2", [False, True], ids=["HTTP/1.1", "HTTP/2"])
def test_four_services_lose_no_data_during_faults(tmp_path: Path, http2: bool) -> None:
    with four_services(tmp_path, cables=namespaces_allowed(), etcd_flags=latency.SlowDisks.SYNCED) as world:
        result = run(world, one_of_each(world), tmp_path, http2=http2)
    assert result.violations == []
    assert len(result.rounds) >= 8
    assert sum(operation.outcome.value == "done" for operation in result.history.operations) > 100


@pytest.mark.timeout(300)
@pytest.mark.parametrize("http2", [False, True], ids=["HTTP/1.1", "HTTP/2"])
def test_replicas_lose_no_data_and_take_over_each_others_work(tmp_path: Path, http2: bool) -> None:
    """Objects are written through both aggregators, and each replica's own cache is read and watched."""
    with four_services(tmp_path, replicas=dict.fromkeys(NAMES, 2), flags=replicas.FLAGS, links=True) as world:
        faults: list[Fault] = [
            replicas.Kill(world, lambda: "core"),
            replicas.Pause(world, lambda: "extensions-2"),
            replicas.KillController(world, random.Random(SEED)),
            replicas.RollingRestart(world, ("core-2", "aggregator")),
            latency.SlowNetwork(world, lambda: 0.25, hold=1.0),
        ]
        result = run(world, faults, tmp_path, http2=http2)
    assert result.violations == []
    for replica in ("configmaps-0", "configmaps-1", "widgets-0", "widgets-1", "roles-0", "roles-1"):
        reads = [operation for operation in result.history.operations if operation.client == f"reader-{replica}"]
        assert sum(operation.outcome.value == "done" for operation in reads) > 10


@pytest.mark.timeout(120)
def test_one_process_loses_no_data_when_it_is_killed(tmp_path: Path) -> None:
    with embedded(tmp_path / "data") as world:
        result = run(world, [processes.KillEmbedded(world)], tmp_path)
    assert result.violations == []


@pytest.mark.timeout(120)
def test_a_fault_can_be_repeated_in_the_directory_of_an_earlier_run(tmp_path: Path) -> None:
    settings = {"CHAOS_FAULTS": "kill-embedded", "CHAOS_SECONDS": "1", "CHAOS_DIRECTORY": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "chaos"],
            check=False,
            cwd=Path(__file__).parents[1],
            env={**os.environ, **settings},
            capture_output=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "kill-embedded" / "history.jsonl").exists()


class Nothing:
    """A fault without effect, for runs in which the bug is in the server."""

    hold = 1.0

    def inject(self) -> str:
        return "nothing"

    def heal(self) -> None:
        """Do nothing, because there is nothing to undo."""


FINDS: dict[str, Callable[[set[str]], bool]] = {
    "lost-write": lambda rules: "lost write" in rules,
    "stale-read": lambda rules: bool(rules & {"stale", "torn list"}),
    "watch-gap": lambda rules: "gap" in rules,
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_planted_in_a_server_is_found(tmp_path: Path, bug: str) -> None:
    with embedded(tmp_path / "data", launcher=("chaos.planted", bug)) as world:
        result = run(world, [Nothing()], tmp_path, operations=1000)
    assert FINDS[bug]({violation.rule for violation in result.violations}), result.violations
