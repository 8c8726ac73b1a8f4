"""All faults by name, with the servers that each is injected into and its requirements of the machine."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chaos.faults import cables, certificates, clocks, disks, etcds, latency, processes, replicas
from chaos.faults.base import Fault
from chaos.run import WATCHERS, WORKERS
from chaos.worlds import FourServices, World, embedded, four_services
from support.disks import STRACE, mounts_allowed, small_disk
from support.network import namespaces_allowed
from support.services import NAMES

Make = Callable[[Any, random.Random], Fault]


@dataclass(frozen=True)
class Scenario:
    """A fault by name.

    Attributes:
        open: starts the servers.
        fault: creates the fault.
        missing: returns why this machine cannot run it, or an empty string.
    """

    name: str
    world: Callable[[Path], Any]
    fault: Make
    missing: Callable[[], str] = lambda: ""
    workers: int = WORKERS
    watchers: int = WATCHERS  # of each kind

    @contextmanager
    def open(self, directory: Path, seed: int) -> Iterator[tuple[World, Fault]]:
        with self.world(directory) as world:
            yield world, self.fault(world, random.Random(seed))


def _no_namespaces() -> str:
    return "" if namespaces_allowed() else "network namespaces need Linux, root and iproute2"


def _no_mounts() -> str:
    return "" if mounts_allowed() else "file systems cannot be mounted here"


def _no_clock() -> str:
    return "" if clocks.library() is not None else "libfaketime is not installed (tools/prepare.sh)"


def _no_strace() -> str:
    return "" if STRACE is not None else "strace is not installed (tools/prepare.sh)"


def _with_syncs(directory: Path) -> Any:
    return four_services(directory, etcd_flags=latency.SlowDisks.SYNCED)


def _with_links(directory: Path) -> Any:
    return four_services(directory, links=True)


def _with_cables(directory: Path) -> Any:
    return four_services(directory, cables=True)


def _with_clocks(directory: Path) -> Any:
    return four_services(directory, environments=clocks.environments(directory))


def _with_little_space(directory: Path) -> Any:
    return four_services(directory, etcd_flags=(f"--quota-backend-bytes={etcds.SPACE}",))


@contextmanager
def _with_a_small_disk(directory: Path) -> Iterator[FourServices]:
    with small_disk(directory / "etcd" / "etcd1", 1024), four_services(directory) as world:
        yield world


@contextmanager
def _embedded_on_a_small_disk(directory: Path) -> Iterator[Any]:
    with small_disk(directory / "data", 64) as disk, embedded(disk) as world:
        yield world


def _embedded(directory: Path) -> Any:
    return embedded(directory / "data")


def _cut(name: str, choose: Callable[[FourServices], Callable[[], cables.Pairs]]) -> Scenario:
    return Scenario(name, _with_cables, lambda world, _: cables.Cut(world, choose(world)), _no_namespaces)


def _of_service(verb: str, fault: Callable[[FourServices, str], Fault], name: str) -> Scenario:
    return Scenario(f"{verb}-{name}", four_services, lambda world, _: fault(world, name))


def _replicated(directory: Path) -> Any:
    return four_services(directory, replicas=dict.fromkeys(NAMES, 2), flags=replicas.FLAGS)


def _of_etcd(name: str, make: Make) -> Scenario:
    return Scenario(name, four_services, make)


def _all(world: FourServices) -> Callable[[], list[Any]]:
    return lambda: list(world.etcd.members)


SCENARIOS: Final = {
    scenario.name: scenario
    for scenario in (
        *(_of_service("kill", processes.KillService, name) for name in NAMES),
        *(_of_service("pause", processes.PauseService, name) for name in NAMES),
        Scenario(
            "kill-replica", _replicated, lambda world, chance: replicas.Kill(world, replicas.anyone(world, chance))
        ),
        Scenario(
            "pause-replica", _replicated, lambda world, chance: replicas.Pause(world, replicas.anyone(world, chance))
        ),
        Scenario("kill-controllers", _replicated, replicas.KillController),
        Scenario("rolling-restart", _replicated, lambda world, _: replicas.RollingRestart(world, world.services.keys)),
        Scenario("kill-redis", four_services, lambda world, _: processes.KillRedis(world)),
        _of_etcd("kill-member", lambda world, chance: etcds.KillMembers(world, etcds.follower(world, chance), 3.0)),
        _of_etcd("kill-leader", lambda world, _: etcds.KillMembers(world, etcds.leader(world), 3.0)),
        _of_etcd("kill-etcd", lambda world, _: etcds.KillMembers(world, _all(world), 3.0)),
        _of_etcd("pause-leader", lambda world, _: etcds.PauseMembers(etcds.leader(world), 6.0)),
        _of_etcd("pause-etcd", lambda world, _: etcds.PauseMembers(_all(world), 6.0)),
        _of_etcd("compaction", lambda world, _: etcds.Compaction(world)),
        _of_etcd("missed-compaction", lambda world, _: etcds.MissedCompaction(world, "core")),
        Scenario("no-space", _with_little_space, lambda world, _: etcds.NoSpace(world)),
        Scenario(
            "full-disk",
            _with_a_small_disk,
            lambda world, _: disks.FullDiskOfMember(world, world.etcd.members[0]),
            _no_mounts,
        ),
        Scenario(
            "slow-disks",
            _with_syncs,
            lambda world, chance: latency.SlowDisks(world, lambda: chance.choice(latency.SYNCS)),
            _no_strace,
        ),
        Scenario(
            "slow-network",
            _with_links,
            lambda world, chance: latency.SlowNetwork(world, lambda: chance.choice(latency.DELAYS)),
        ),
        Scenario(
            "expired-certificates",
            four_services,
            lambda world, _: certificates.Expire(world, world.services.keys),
        ),
        _cut("cut-core", lambda _: lambda: [("aggregator", "core")]),
        _cut("cut-auth", lambda _: lambda: [("aggregator", "auth"), ("core", "auth")]),
        _cut("cut-core-from-leader", lambda world: cables.service_from_leader(world, "core")),
        _cut("cut-core-from-etcd", lambda _: cables.service_from_etcd("core")),
        _cut("cut-leader", cables.leader_from_members),
        Scenario("clock", _with_clocks, clocks.Jump, _no_clock),
        Scenario(
            "thousand-watchers",
            four_services,
            lambda world, _: etcds.KillMembers(world, _all(world), 5.0),
            workers=1,
            watchers=334,
        ),
        Scenario("kill-embedded", _embedded, lambda world, _: processes.KillEmbedded(world)),
        Scenario(
            "full-disk-embedded",
            _embedded_on_a_small_disk,
            lambda world, _: disks.FullDiskOfEmbedded(world, world.directory),
            _no_mounts,
        ),
    )
}
