"""`python -m stall.probe URL CA TOKEN PID…`: another user's requests while the server is busy.

One GET of an object and one of /readyz, every ten milliseconds each, on kept connections. Each line of input ends a period and is
answered with the longest waits in it, in seconds, as JSON. A wait does not include the time for which the server or the probe was
ready to run but the kernel ran something else (/proc/…/schedstat): other programs on the host are not the server's fault.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

INTERVAL: Final = 0.01
PATHS: Final = {"get": "/api/v1/namespaces/probe/configmaps/probe", "readyz": "/readyz"}
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


class Probe:
    """Requests of one path, in a thread."""

    def __init__(self, url: str, ca: str, token: str, path: str, pids: Sequence[int]) -> None:
        parts = urlsplit(url)
        context = ssl.create_default_context(cafile=ca)
        context.check_hostname = False
        self._connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=120)
        self._token, self._path, self._pids = token, path, pids
        self._lock = threading.Lock()
        self._longest = self._began = 0.0
        self._base = delayed(pids)
        threading.Thread(target=self._run, daemon=True).start()

    def period(self) -> float:
        """Return the longest wait since the last call, one that still lasts included."""
        with self._lock:
            longest, self._longest = self._longest, 0.0
            return max(longest, time.monotonic() - self._began if self._began else 0.0)

    def _run(self) -> None:
        while True:
            self._base = delayed(self._pids)
            self._began = began = time.monotonic()
            try:
                self._connection.request("GET", self._path, headers={"Authorization": f"Bearer {self._token}"})
                self._connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
            took = time.monotonic() - began
            if took > _LOOKED:
                took = max(0.0, took - (delayed(self._pids) - self._base))
            with self._lock:
                self._longest, self._began = max(self._longest, took), 0.0
            time.sleep(INTERVAL)


def main() -> None:
    url, ca, token, *pids = sys.argv[1:]
    probes = {name: Probe(url, ca, token, path, [os.getpid(), *map(int, pids)]) for name, path in PATHS.items()}
    for _ in sys.stdin:
        print(json.dumps({name: probe.period() for name, probe in probes.items()}), flush=True)


if __name__ == "__main__":
    main()
