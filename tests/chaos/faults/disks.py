"""Full disks: a small file system in memory holds the data of one etcd member or of the embedded server."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from chaos.faults.etcds import FILLER, FILLER_SIZE, coded, make_room
from chaos.worlds import Embedded, FourServices
from support.disks import fill
from support.etcd import Etcd

LOG: Final = 128 << 20  # of etcd: the segment in use and the next one


class FullDiskOfMember:
    """Fill the disk of a member. etcd exits when it cannot write, and the others go on.

    It is started again after space was freed.
    """

    hold = 6.0

    def __init__(self, world: FourServices, member: Etcd) -> None:
        self._world = world
        self._member = member

    def inject(self) -> str:
        fill(self._member.directory)
        for number in range(LOG // FILLER_SIZE + 1):  # its log has preallocated a segment, which must be used up first
            with contextlib.suppress(OSError):
                self._world.etcd.leader().call(
                    "/v3/kv/put", {"key": coded(f"{FILLER}{number}"), "value": coded("x" * FILLER_SIZE)}
                )
            if not self._member.running:
                return f"the disk of {self._member.name} is full, and it has ended"
        return f"the disk of {self._member.name} is full"

    def heal(self) -> None:
        (self._member.directory / "filler").unlink()
        self._world.etcd.start()
        make_room(self._world)


class FullDiskOfEmbedded:
    hold = 4.0

    def __init__(self, world: Embedded, disk: Path) -> None:
        self._world = world
        self._disk = disk

    def inject(self) -> str:
        fill(self._disk)
        free = os.statvfs(self._disk)
        return f"the disk is full ({free.f_bavail} blocks are free)"

    def heal(self) -> None:
        (self._disk / "filler").unlink()
