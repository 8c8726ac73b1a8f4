"""A harness that is terminated stops the processes that it has started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PROGRAM = """
import asyncio, subprocess, sys, time
from support.server import end
from support.termination import exit_on_sigterm

exit_on_sigterm()
child = subprocess.Popen(["sleep", "600"])
try:
    print(child.pid, flush=True)
    {wait}
finally:
    end(child)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
@pytest.mark.parametrize("wait", ["time.sleep(600)", "asyncio.run(asyncio.sleep(600))"])
def test_sigterm_ends_the_processes_of_a_harness(wait: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "services")])}
    argv = [sys.executable, "-c", PROGRAM.format(wait=wait)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as harness:
        assert harness.stdout is not None
        child = int(harness.stdout.readline())
        harness.terminate()
        assert harness.wait(30) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
