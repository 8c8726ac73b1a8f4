"""A user who executes the commands of a documentation page, with the programs of this checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.kubectl import executable
from support.pages import execute
from support.server import SERVICES, end, free_port, running
from support.waiting import until


@dataclass(frozen=True)
class Reader:
    """A user with a working directory.

    Attributes:
        directory: the working directory. The data of the server is below `data`.
        kubeconfig: the administrator's, if the server is not that of `up`.
    """

    directory: Path
    kubeconfig: Path | None = None

    def __post_init__(self) -> None:
        programs = self.directory / "programs"
        programs.mkdir(exist_ok=True)
        tetrapod = programs / "tetrapod"
        tetrapod.write_text(f'#!/bin/sh\nexec {sys.executable} -m tetrapod.cli.main "$@"\n')
        tetrapod.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the commands."""
        programs = (self.directory / "programs", Path(executable()).parent, Path(sys.executable).parent)
        return {
            **os.environ,
            "HOME": str(self.directory),
            "KUBECONFIG": str(self.kubeconfig or self.directory / "data/kubeconfig"),
            "PATH": ":".join((*map(str, programs), os.environ["PATH"])),
            "PYTHONPATH": str(SERVICES),
        }

    @property
    def log(self) -> Path:
        """The output of the commands of `executing`."""
        return self.directory / "log"

    def run(self, commands: str) -> str:
        """Run commands of a page, all of which must succeed, and return their output."""
        shell = ("bash", "-euo", "pipefail", "-c")
        return execute(commands, self.directory, self.environment, timeout=120, shell=shell)

    @contextmanager
    def executing(self, commands: str, *, timeout: float = 120) -> Iterator[None]:
        """Run commands, all of which must succeed. The programs in the background run until the context ends.

        Args:
            commands: the commands, for bash.
            timeout: the seconds that they may take.
        """
        done = self.directory / "done"
        done.unlink(missing_ok=True)
        script = f"set -euo pipefail\ntrap 'kill $(jobs -p); wait' EXIT\n{commands}\ntouch {done}\nwait"
        with self.log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", script], cwd=self.directory, env=self.environment, stdout=out, stderr=out
            )
        try:
            until(lambda: done.exists() or process.poll() is not None, timeout=timeout, description=commands)
            assert done.exists(), f"{commands}\n{self.log.read_text()[-6000:]}"
            yield
        finally:
            end(process)

    @contextmanager
    def up(self, *flags: str) -> Iterator[None]:
        """Run `tetrapod up` with flags."""
        with running(self.directory / "data", *flags):
            yield


def with_free_ports(commands: str) -> str:
    """Replace each port that a `--secure-port` names by one that is free."""
    for port in sorted(set(re.findall(r"--secure-port=(\d+)", commands))):
        commands = commands.replace(port, str(free_port()))
    return commands
