"""Background processes that outlive the command that starts them.

A file for each process records its id and the time of its start, so that a process that got the same id later is never
mistaken for it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from support.server import without_cluster
from support.waiting import until


def start_time(pid: int) -> str | None:
    """Return the time at which a process started, in clock ticks since the boot, or None if it has ended.

    Its first thread may end before others. Until they have ended too, they hold its files and ports.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, threads, started = fields[0], int(fields[17]), fields[19]
    return None if state == "Z" and threads <= 1 else started


@dataclass(frozen=True)
class Processes:
    """The processes of which a directory has files.

    Args:
        directory: the directory of the files, one for each process.
        logs: the directory of the logs. A process appends its output to NAME.log there.
    """

    directory: Path
    logs: Path

    def start(self, name: str, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Start a process in a session of its own, and return its id."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as out:
            pid = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**without_cluster(), **(environment or {})},
                start_new_session=True,
            ).pid
        self._file(name).write_text(json.dumps({"pid": pid, "started": start_time(pid)}))
        return pid

    def log(self, name: str) -> Path:
        """Return the path of the log of a process."""
        return self.logs / f"{name}.log"

    def pid(self, name: str) -> int | None:
        """Return the id of a process that runs, or None."""
        try:
            record = json.loads(self._file(name).read_text())
        except FileNotFoundError:
            return None
        return record["pid"] if record["started"] and start_time(record["pid"]) == record["started"] else None

    def names(self) -> list[str]:
        """Return the names of the processes that were started, in any state."""
        return sorted(path.stem for path in self.directory.glob("*.json"))

    def stop(self, *names: str, number: signal.Signals = signal.SIGTERM, timeout: float = 20) -> None:
        """Signal processes, and wait until they have ended. Those that do not end in time are killed."""
        running = {name: pid for name in names if (pid := self.pid(name)) is not None}
        for pid in running.values():
            _signal(pid, number)
        for name, pid in running.items():
            try:
                self._wait_until_ended(name, timeout)
            except AssertionError:
                _signal(pid, signal.SIGKILL)
                self._wait_until_ended(name, timeout)
        for name in names:
            self._file(name).unlink(missing_ok=True)

    def restart(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a process that runs by a signal, and start it again with its arguments and environment."""
        pid = self.pid(name)
        assert pid is not None, f"{name} does not run"
        argv, variables = (Path(f"/proc/{pid}/{part}").read_bytes().decode() for part in ("cmdline", "environ"))
        self.stop(name, number=number)
        environment = dict(line.split("=", 1) for line in variables.rstrip("\0").split("\0"))
        self.start(name, argv.rstrip("\0").split("\0"), environment)

    def _wait_until_ended(self, name: str, timeout: float) -> None:
        until(lambda: self._ended(name), timeout=timeout, description=f"the end of {name}")

    def _ended(self, name: str) -> bool:
        pid = self.pid(name)
        if pid is not None:
            with suppress(ChildProcessError):  # only a child of this process becomes a zombie here
                os.waitpid(pid, os.WNOHANG)
        return self.pid(name) is None

    def _file(self, name: str) -> Path:
        return self.directory / f"{name}.json"


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
