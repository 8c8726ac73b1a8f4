"""Run the load generator of `tests/scale/load`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.targets import TOKEN
from support.goprogram import build_go_program


class LoadFailed(Exception):
    """The load generator ended with an error, or did not report what it should."""


class Generator:
    """A running load generator, which reports events as lines of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def wait_for(self, event: str) -> dict[str, Any]:
        """Wait for an event and return it.

        Raises:
            LoadFailed: the generator ended before it.
        """
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report: dict[str, Any] = json.loads(line)
            print(f"  {line.rstrip()}", file=sys.stderr, flush=True)
            if report["event"] == event:
                return report
        raise LoadFailed(f"the load generator ended with {self._process.wait()} before {event!r}")

    def finish(self) -> None:
        """Wait until it ends.

        Raises:
            LoadFailed: it ended with an error.
        """
        self._process.communicate()
        if self._process.returncode:
            raise LoadFailed(f"the load generator ended with {self._process.returncode}")


def load_program() -> Path:
    """Build the load generator, and return its path."""
    return build_go_program(Path(__file__).parent / "load", "scaleload")


@contextmanager
def running(url: str, command: str, flags: Sequence[str | Path]) -> Iterator[Generator]:
    """Run a subcommand of the load generator against a server, and end it at the end of the context."""
    server = ["--server", url, "--insecure-skip-tls-verify", "--token", TOKEN]
    argv = [str(load_program()), command, *server, *map(str, flags)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        yield Generator(process)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
        if process.stdout is not None:
            process.stdout.close()
