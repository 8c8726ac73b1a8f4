"""Disks without space, without harm: small file systems in memory, and writes that fail as with an exceeded quota."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from support.waiting import until


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


STRACE: Final = shutil.which("strace")


@contextmanager
def quota_exceeded(process: int, *files: Path) -> Iterator[None]:
    """Let each write of a process to these files fail with EDQUOT. strace replaces the results of the system calls.

    A real quota would need a kernel with quotas for ext4 or XFS, and another user than root.
    """
    assert STRACE is not None
    paths = [argument for file in files for argument in ("-P", str(file))]
    calls = "write,pwrite64"
    faults = ("-e", f"trace={calls}", "-e", f"inject={calls}:error=EDQUOT")
    strace = subprocess.Popen([STRACE, "-f", "-qq", "-o", "/dev/null", *paths, *faults, "-p", str(process)])

    def traced() -> bool:
        statuses = [status.read_text() for status in Path(f"/proc/{process}/task").glob("*/status")]
        return strace.poll() is not None or all(f"TracerPid:\t{strace.pid}\n" in status for status in statuses)

    try:
        until(traced)
        assert strace.poll() is None, "strace cannot trace the server"
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        strace.wait()
