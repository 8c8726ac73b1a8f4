"""Full disks: a small file system in memory holds the data of one etcd member or of the embedded server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from chaos.faults.etcds import FILLER, FILLER_SIZE, coded, make_room
from chaos.worlds import Embedded, FourServices
from support.etcd import Etcd

LOG: Final = 128 << 20  # of etcd: the segment in use and the next one


@cache
def mounts_allowed() -> bool:
    try:
        with tempfile.TemporaryDirectory() as directory, small_disk(Path(directory) / "disk", 1):
            return True
    except (subprocess.CalledProcessError, OSError):
        return False


@contextmanager
def small_disk(where: Path, megabytes: int) -> Iterator[Path]:
    where.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(where)], check=True, capture_output=True
    )
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True, capture_output=True)


def fill(disk: Path) -> Path:
    """Fill the file system to the last byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as out, contextlib.suppress(OSError):
        while True:
            if out.write(b"\0" * 65536) < 65536:
                break
    with filler.open("ab", buffering=0) as out, contextlib.suppress(OSError):
        while out.write(b"\0" * 512):
            pass
    return filler


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
