"""CPU time and resident memory of processes, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of all threads, including ended ones."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that run."""
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def cpu_of(pids: Iterable[int]) -> float:
    return sum(cpu_seconds(pid) for pid in pids)


def resident(pid: int) -> int:
    """Return the resident memory in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def resident_together(pids: Iterable[int]) -> int:
    """Return the memory that processes of the same program take together, in bytes.

    Pages of files, such as the interpreter and its libraries, are in memory once. They count for the process that has
    most of them.
    """
    pages = [[int(field) for field in Path(f"/proc/{pid}/statm").read_text().split()[1:3]] for pid in pids]
    return (sum(all_pages - of_files for all_pages, of_files in pages) + max(of_files for _, of_files in pages)) * _PAGE


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_resident(pid: int) -> int:
    """Return the highest resident memory since `reset_peak`, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no VmHWM of {pid}")


def settle(pids: Iterable[int], timeout: float = 10.0, quiet: float = 0.02) -> None:
    """Wait until the processes are idle: half a second with less than `quiet` seconds of CPU time."""
    pids = list(pids)
    deadline = time.monotonic() + timeout
    before = cpu_of(pids)
    while time.monotonic() < deadline:
        time.sleep(0.5)
        now = cpu_of(pids)
        if now - before <= quiet:
            return
        before = now
