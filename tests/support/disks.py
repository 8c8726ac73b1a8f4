"""Small file systems in memory, to fill a disk without harm."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


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
