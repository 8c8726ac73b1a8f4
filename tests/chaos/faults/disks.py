"""Disks that are full: small file systems of their own, in memory, below one member of etcd or below the embedded server."""

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

from chaos.worlds import Embedded, FourServices

MEGABYTE: Final = 1 << 20


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
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(where)], check=True, capture_output=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True, capture_output=True)


def fill(disk: Path) -> Path:
    """Leaves not a byte."""
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
    """etcd gives up where it cannot write; the others go on. With room again, it is started again."""

    hold = 6.0

    def __init__(self, world: FourServices, disk: Path) -> None:
        self._world = world
        self._disk = disk

    def inject(self) -> str:
        fill(self._disk)
        return "the disk of a member is full"

    def heal(self) -> None:
        (self._disk / "filler").unlink()
        self._world.etcd.start()


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
