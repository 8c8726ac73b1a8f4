"""Run h2load (Debian's nghttp2-client): requests without a body over HTTP/2, on one connection, over TLS with a bearer
token.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.wrk import CONNECTIONS, Figures, Load

STREAMS = 1000
"""Requests of a flood that are in flight at once. The servers under measurement permit as many streams."""
_DONE = re.compile(
    r"^requests: \d+ total, \d+ started, (\d+) done, \d+ succeeded, \d+ failed, (\d+) errored, (\d+) timeout",
    re.MULTILINE,
)
_STATUSES = re.compile(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", re.MULTILINE)
_TRAFFIC = re.compile(r"^traffic: .* \((\d+)\) data$", re.MULTILINE)


def available() -> bool:
    return shutil.which("h2load") is not None


@dataclass(frozen=True)
class Run:
    """A running h2load.

    Attributes:
        log: the file to which it writes a line for each request.
    """

    process: subprocess.Popen[str]
    log: Path
    seconds: int

    def figures(self) -> Figures:
        """Wait until it ends."""
        output, _ = self.process.communicate()
        if self.process.returncode:
            raise subprocess.CalledProcessError(self.process.returncode, self.process.args, output)
        done, statuses, traffic = (form.search(output) for form in (_DONE, _STATUSES, _TRAFFIC))
        if done is None or statuses is None or traffic is None:
            raise ValueError(output)
        taken = sorted(int(line.split()[2]) for line in self.log.read_text().splitlines()) or [0]
        return Figures(
            requests=int(done[1]),
            bytes=int(traffic[1]),
            seconds=self.seconds,
            p50_ms=taken[len(taken) // 2] / 1e3,
            p99_ms=taken[len(taken) * 99 // 100] / 1e3,
            failed=int(done[1]) - int(statuses[1]),
            broken=int(done[2]) + int(done[3]),
        )


def begin(url: str, token: str, load: Load, seconds: float, directory: Path, *, streams: int = CONNECTIONS) -> Run:
    """Start h2load for some whole seconds, with as many requests in flight as `streams`, or as the server permits."""
    assert not load.body
    log = directory / "h2load.log"
    log.unlink(missing_ok=True)
    whole = max(1, round(seconds))
    command = ["h2load", "--clients=1", "--threads=1", f"--max-concurrent-streams={streams}", f"--duration={whole}"]
    command += [f"--header=authorization: Bearer {token}", f"--header=accept: {load.accept}", f"--log-file={log}"]
    if load.encoding:
        command.append(f"--header=accept-encoding: {load.encoding}")
    process = subprocess.Popen([*command, f"{url}{load.path}"], stdout=subprocess.PIPE, text=True)
    return Run(process, log, whole)


def run(url: str, token: str, load: Load, seconds: float, directory: Path, *, start: int = 0) -> Figures:
    """Load the server over HTTP/2 for some seconds. `start` has no effect: the requests have no body."""
    return begin(url, token, load, seconds, directory).figures()
