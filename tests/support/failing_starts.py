"""Commands that end by themselves, and servers that must not start."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from support.server import command, environment, free_port


class FailedStart(NamedTuple):
    """How a server ended that did not start."""

    code: int
    stderr: str

    @property
    def error(self) -> str:
        """The last line of the error output."""
        return self.stderr.strip().splitlines()[-1]


def run_command(*args: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a command of `tetrapod`, such as `up`, wait for its end and return its exit code and output."""
    return subprocess.run(
        command(*args), env=environment(), capture_output=True, text=True, timeout=timeout, check=False
    )


def failed_start(directory: Path, *flags: str) -> FailedStart:
    """Start one process with all services, which must end with an error in plain words.

    Args:
        directory: the directory for its files.
        flags: further flags. Without --secure-port, it gets a free port.
    """
    port = () if any(flag.startswith("--secure-port") for flag in flags) else (f"--secure-port={free_port()}",)
    ended = run_command("up", "--data-dir", str(directory), "--bind-address=127.0.0.1", *port, *flags)
    assert ended.returncode in (1, 2), ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    return FailedStart(ended.returncode, ended.stderr)


def start_error(directory: Path, *flags: str) -> str:
    """Return the last line of the error output of `failed_start`."""
    return failed_start(directory, *flags).error
