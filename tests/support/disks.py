"""Disks without space, without harm: small file systems in memory, and writes that fail as with an exceeded quota."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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


def quota_exceeded(process: int, *files: Path) -> AbstractContextManager[None]:
    """Let each write of a process to these files fail with EDQUOT. strace replaces the results of the system calls.

    A real quota would need a kernel with quotas for ext4 or XFS, and another user than root.
    """
    paths = [argument for file in files for argument in ("-P", str(file))]
    return _injected(process, "write,pwrite64", "error=EDQUOT", *paths)


def slow_syncs(process: int, seconds: float) -> AbstractContextManager[None]:
    """Let each sync of a file take longer. strace delays the system calls."""
    return _injected(process, "fsync,fdatasync", f"delay_enter={round(seconds * 1e6)}")


@contextmanager
def _injected(process: int, calls: str, fault: str, *options: str) -> Iterator[None]:
    """Inject a fault into system calls of all threads of a process.

    Args:
        process: its ID.
        calls: the names of the system calls, separated by commas.
        fault: what to inject, as in strace's option `inject`.
        options: further options of strace.
    """
    assert STRACE is not None
    faults = ("-e", f"trace={calls}", "-e", f"inject={calls}:{fault}")
    strace = subprocess.Popen([STRACE, "-f", "-qq", "-o", "/dev/null", *options, *faults, "-p", str(process)])

    def traced() -> bool:
        statuses = [status.read_text() for status in Path(f"/proc/{process}/task").glob("*/status")]
        return strace.poll() is not None or all(f"TracerPid:\t{strace.pid}\n" in status for status in statuses)

    try:
        until(traced)
        assert strace.poll() is None, "strace cannot trace the process"
        yield
    finally:
        strace.send_signal(signal.SIGINT)
        strace.wait()
