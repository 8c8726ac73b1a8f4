"""A slow etcd: its disk or its network answers late, but nothing fails."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Final

from chaos.faults.etcds import FILLER, coded
from chaos.worlds import FourServices
from support.disks import slow_syncs
from support.waiting import until

SYNCS: Final = (0.1, 0.4, 1.0)
"""Seconds that a sync of the disk takes. The last one is as long as etcd's election timeout."""
DELAYS: Final = (0.05, 0.25, 0.75)
"""Seconds that bytes take in each direction. With the last one, a call takes longer than a service waits before it
pings a member.
"""


class SlowDisks:
    """Let each sync of the disks of all members take longer, so that etcd acknowledges each write late.

    The world must run etcd with `SYNCED`.
    """

    SYNCED: Final = ("--unsafe-no-fsync=false",)

    def __init__(self, world: FourServices, choose: Callable[[], float], hold: float = 6.0) -> None:
        self.hold = hold
        self._world = world
        self._choose = choose
        self._seconds = 0.0
        self._slowed = contextlib.ExitStack()

    def inject(self) -> str:
        self._seconds = self._choose()
        for member in self._world.etcd.members:
            self._slowed.enter_context(slow_syncs(member.pid, self._seconds))
        took = until(self._write, lambda took: took >= self._seconds, description="a slow write of etcd")
        return f"each sync of a disk takes {self._seconds} s longer, and a write of etcd took {took:.2f} s"

    def heal(self) -> None:
        self._slowed.close()
        until(self._write, lambda took: 0 < took < self._seconds, description="a fast write of etcd")

    def _write(self) -> float:
        """Return the seconds that a write of etcd takes; 0 if it fails, as during an election."""
        began = time.monotonic()
        try:
            self._world.etcd.leader().call("/v3/kv/put", {"key": coded(f"{FILLER}slow"), "value": ""}, timeout=30)
        except OSError:
            return 0.0
        return time.monotonic() - began


class SlowNetwork:
    """Add latency between the services and etcd. The world must have links."""

    def __init__(self, world: FourServices, choose: Callable[[], float], hold: float = 6.0) -> None:
        assert world.links is not None
        self.hold = hold
        self._links = world.links
        self._choose = choose

    def inject(self) -> str:
        self._links.delay = self._choose()
        took = self._links.round_trip()
        assert took >= 2 * self._links.delay, took
        return f"bytes between the services and etcd take {self._links.delay} s longer"

    def heal(self) -> None:
        self._links.delay = 0.0
