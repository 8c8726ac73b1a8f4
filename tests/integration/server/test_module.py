"""`python -m tetrapod`, for environments whose programs are not in the PATH."""

from __future__ import annotations

import subprocess
import sys

from support.failing_starts import run_command
from support.server import environment


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "tetrapod", "version"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == run_command("version").stdout
