"""Run commands of the system, with their output in the error if they fail."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


class CommandError(Exception):
    """A command failed. The message has the command and its output."""


def run(*argv: str | Path, stdin: str = "", timeout: float = 60, environment: Mapping[str, str] | None = None) -> str:
    """Run a command, and return its output.

    Raises:
        CommandError: it ended with another code than 0.
        subprocess.TimeoutExpired: it did not end in time.
    """
    command = [str(part) for part in argv]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=timeout, env=environment, check=False
    )
    if done.returncode:
        raise CommandError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def succeeds(*argv: str | Path) -> bool:
    """Return whether a command ends with 0."""
    return subprocess.run([str(part) for part in argv], capture_output=True, check=False).returncode == 0
