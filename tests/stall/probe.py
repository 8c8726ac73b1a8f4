"""`python -m stall.probe URL CA TOKEN VERSION PID…`: another user's requests while the server is busy.

Every ten milliseconds, the probe sends a GET of an object and a GET of /readyz, each on a connection that stays open.
VERSION is that of HTTP: 1.1 or 2.

Each line of input ends a period. The answer is a line of JSON with the longest waits in that period, in seconds.

- `wall` is the wait without the time in which the server or the probe was ready to run, but the kernel ran something
  else (/proc/…/schedstat).
- `cpu` is at most the CPU time that the server's processes took during the wait. On a busy host only this part is
  caused by the server. It leaves out waits for disks and the network.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from support.wire import Client, Endpoint

INTERVAL: Final = 0.01
PATHS: Final = ("/api/v1/namespaces/probe/configmaps/probe", "/readyz")
_LOOKED: Final = 0.02
"""Seconds of a wait below which the kernel is not asked for its share."""


def delayed(pids: Sequence[int]) -> float:
    """Return the seconds for which the threads of each process waited for a CPU, the longest of each added up."""
    total = 0.0
    for pid in pids:
        longest = 0
        for stat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                longest = max(longest, int(stat.read_text().split()[1]))
            except (OSError, IndexError):
                continue
        total += longest / 1e9
    return total


def used(pids: Sequence[int]) -> float:
    """Return the CPU seconds of processes, by their CPU clocks (clock_getcpuclockid of the C library)."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


class Probe:
    """Requests of one path, in a thread. `pids` begins with this process."""

    def __init__(self, url: str, ca: str, token: str, version: str, path: str, pids: Sequence[int]) -> None:
        self._client = Client(Endpoint(url, Path(ca)), token, 120, http2=version == "2")
        self._path, self._pids = path, pids
        self._lock = threading.Lock()
        self._longest = {"wall": 0.0, "cpu": 0.0}
        self._began = self._cpu = 0.0
        threading.Thread(target=self._run, daemon=True).start()

    def period(self) -> dict[str, float]:
        """Return the longest waits since the last call, one that still lasts included."""
        with self._lock:
            longest, self._longest = self._longest, {"wall": 0.0, "cpu": 0.0}
            if self._began:
                took = time.monotonic() - self._began
                longest = {
                    "wall": max(longest["wall"], took),
                    "cpu": max(longest["cpu"], min(took, used(self._pids[1:]) - self._cpu)),
                }
            return longest

    def _run(self) -> None:
        while True:
            delay, self._cpu = delayed(self._pids), used(self._pids[1:])
            self._began = began = time.monotonic()
            try:
                self._client("GET", self._path)
            except (OSError, http.client.HTTPException):
                self._client.close()
            took = time.monotonic() - began
            waits = {"wall": took, "cpu": took}
            if took > _LOOKED:
                waits = {
                    "wall": max(0.0, took - (delayed(self._pids) - delay)),
                    "cpu": min(took, used(self._pids[1:]) - self._cpu),
                }
            with self._lock:
                self._longest = {clock: max(self._longest[clock], waits[clock]) for clock in waits}
                self._began = 0.0
            time.sleep(INTERVAL)


def main() -> None:
    url, ca, token, version, *pids = sys.argv[1:]
    processes = [os.getpid(), *map(int, pids)]
    probes = [Probe(url, ca, token, version, path, processes) for path in PATHS]
    for _ in sys.stdin:
        periods = [probe.period() for probe in probes]
        print(json.dumps({clock: max(period[clock] for period in periods) for clock in ("wall", "cpu")}), flush=True)


if __name__ == "__main__":
    main()
