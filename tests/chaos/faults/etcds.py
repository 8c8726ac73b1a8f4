"""Faults of etcd: members crash, hang, run out of space, and compact their history."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import signal
import urllib.error
from collections.abc import Callable
from typing import Final

from chaos.worlds import FourServices
from support.etcd import Etcd
from support.server import freeze

FILLER: Final = "/filler/"
FILLER_SIZE: Final = 1_000_000
SPACE: Final = 24 << 20  # etcd's space quota in the scenario that exhausts it


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class KillMembers:
    def __init__(self, world: FourServices, choose: Callable[[], list[Etcd]], hold: float) -> None:
        self.hold = hold
        self._world = world
        self._choose = choose

    def inject(self) -> str:
        chosen = self._choose()
        for member in chosen:
            member.stop()
        return "kill -9 of " + ", ".join(member.name for member in chosen)

    def heal(self) -> None:
        self._world.etcd.start()


class PauseMembers:
    def __init__(self, choose: Callable[[], list[Etcd]], hold: float) -> None:
        self.hold = hold
        self._choose = choose
        self._paused: list[Etcd] = []

    def inject(self) -> str:
        self._paused = self._choose()
        for member in self._paused:
            member.pause()
        return "SIGSTOP of " + ", ".join(member.name for member in self._paused)

    def heal(self) -> None:
        for member in self._paused:
            member.resume()


def leader(world: FourServices) -> Callable[[], list[Etcd]]:
    return lambda: [world.etcd.leader()]


def follower(world: FourServices, chance: random.Random) -> Callable[[], list[Etcd]]:
    def choose() -> list[Etcd]:
        first = world.etcd.leader()
        return [chance.choice([member for member in world.etcd.members if member is not first])]

    return choose


class Compaction:
    """Compact all revisions that the witness has recorded, while watches are open and lists are read in pages."""

    hold = 1.0

    def __init__(self, world: FourServices) -> None:
        self._world = world

    def inject(self) -> str:
        return f"compaction to {compact(self._world)}"

    def heal(self) -> None:
        """Do nothing: a compaction cannot be undone."""


def compact(world: FourServices) -> int:
    """Compact up to the revision that the witness has recorded, so that it misses nothing."""
    revision = world.witness.revision
    with contextlib.suppress(urllib.error.HTTPError):  # another compaction is already further
        world.etcd.leader().call("/v3/kv/compaction", {"revision": str(revision), "physical": True}, timeout=30)
    return revision


class MissedCompaction:
    """Suspend a service until etcd has compacted the changes that it missed.

    Its watch must get an error, and it must list again.
    """

    hold = 1.0

    def __init__(self, world: FourServices, name: str) -> None:
        self._world = world
        self._name = name

    def inject(self) -> str:
        process = self._world.services.processes[self._name]
        freeze(process)
        self._world.etcd.stop()
        self._world.etcd.start()
        first = self._world.etcd.leader()
        for _ in range(20):
            answer = first.call("/v3/kv/put", {"key": coded(f"{FILLER}0"), "value": ""}, timeout=30)
        self._world.witness.wait_for(int(answer["header"]["revision"]))
        revision = compact(self._world)
        return f"{self._name} stopped, etcd started anew and compacted to {revision}"

    def heal(self) -> None:
        self._world.services.processes[self._name].send_signal(signal.SIGCONT)


def make_room(world: FourServices) -> None:
    """Delete the objects that filled the store."""
    removed = world.etcd.leader().call(
        "/v3/kv/deleterange", {"key": coded(FILLER), "range_end": coded("/filler0")}, timeout=30
    )
    world.witness.wait_for(int(removed["header"]["revision"]))
    compact(world)


class NoSpace:
    """Use up etcd's quota: it raises its alarm and rejects all writes until space is freed."""

    hold = 5.0

    def __init__(self, world: FourServices) -> None:
        self._world = world

    def inject(self) -> str:
        first = self._world.etcd.leader()
        value = coded("x" * FILLER_SIZE)
        for number in range(4 * SPACE // FILLER_SIZE):
            try:
                first.call("/v3/kv/put", {"key": coded(f"{FILLER}{number}"), "value": value}, timeout=30)
            except urllib.error.HTTPError as error:
                with error:
                    assert "space exceeded" in json.load(error)["message"]
                return "etcd is out of space"
        raise AssertionError("etcd takes more than its quota")

    def heal(self) -> None:
        make_room(self._world)
        first = self._world.etcd.leader()
        for member in self._world.etcd.members:
            member.call("/v3/maintenance/defragment", timeout=60)
        alarms = first.call("/v3/maintenance/alarm", {"action": "GET"}, timeout=30).get("alarms", [])
        for alarm in alarms:
            first.call("/v3/maintenance/alarm", {**alarm, "action": "DEACTIVATE"}, timeout=30)
