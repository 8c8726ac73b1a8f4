"""Run the test program of a package against Tetrapod, as often as it takes to see the result of every test."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.etcd import etcd_36, running_etcd
from upstream.output import Outcome, parse
from upstream.packages import Package
from upstream.results import Raw
from upstream.workspace import ROOT, Workspace

_GRACE: Final = 20  # seconds between the test program's own timeout and its end by force
_FINISHED: Final = re.compile(rb"(?m)^\x16?(?:PASS|FAIL)\r?$")
_ROUNDS: Final = 8  # a panic ends a test program: the tests after it run in the next round
_LOGS: Final = ROOT / ".cache" / "upstream"


@dataclass(frozen=True)
class Choice:
    """Which tests of a package run: those that match a pattern (of go test -run), or the named ones, or all."""

    pattern: str = ""
    tests: frozenset[str] | None = None

    def includes(self, test: str) -> bool:
        return self.tests is None or test in self.tests

    @property
    def argument(self) -> str:
        """The value of -test.run."""
        return self.pattern or ("" if self.tests is None else f"^({'|'.join(sorted(self.tests))})$")


def run_package(workspace: Workspace, package: Package, seconds: int, choice: Choice) -> Raw:
    """Run the chosen tests of a package for at most so many seconds.

    A panic or a timeout ends the program. The tests that it had not reached run in a further round, and once more those
    that it interrupted.
    """
    started = time.monotonic()
    directory = _LOGS / package.file
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    names = [name for name in _tests(workspace, package) if choice.includes(name)]
    outcomes: dict[str, Outcome] = {}
    interrupted: set[str] = set()
    for number in range(_ROUNDS):
        left = seconds - int(time.monotonic() - started)
        skip = [name for name in names if name in outcomes and name not in interrupted]
        if left < _GRACE or len(skip) == len(names):
            break
        output = directory / f"output-{number}.txt"
        _round(workspace, package, output, (left, choice.argument, skip))
        found = parse(output.read_text(errors="replace"))
        progress = bool(interrupted or found.keys() - outcomes.keys())
        interrupted = {name for name in names if name in found and found[name].state == "unfinished"} - outcomes.keys()
        outcomes.update(found)
        if choice.pattern or not progress:
            break
    missing = [] if choice.pattern else [name for name in names if name not in outcomes]
    unreached = {name: Outcome("unfinished", "not reached") for name in missing}
    return Raw({**outcomes, **unreached}, int(time.monotonic() - started))


def _tests(workspace: Workspace, package: Package) -> list[str]:
    command = [str(workspace.program(package)), "-test.list", "^Test"]
    directory = workspace.run_directory(package)
    done = subprocess.run(
        command,
        cwd=directory,
        env=_environment(workspace, None),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return [line for line in done.stdout.decode().splitlines() if re.fullmatch(r"Test\w+", line)]


def _round(workspace: Workspace, package: Package, output: Path, part: tuple[int, str, list[str]]) -> None:
    seconds, pattern, skip = part
    command = [str(workspace.program(package)), "-test.v=test2json", f"-test.timeout={seconds}s"]
    command += [f"-test.run={pattern}"] if pattern else []
    command += [f"-test.skip=^({'|'.join(skip)})$"] if skip else []
    directory = workspace.run_directory(package)
    with (
        tempfile.TemporaryDirectory(prefix="upstream-") as temporary,
        _etcd(package, Path(temporary)) as etcd,
        output.open("wb") as file,
    ):
        environment = {**_environment(workspace, output.parent), **etcd, "TMPDIR": temporary}
        process = subprocess.Popen(
            command, cwd=directory, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            _wait(process, output, seconds + _GRACE)
        finally:
            _end(process)


def _wait(process: subprocess.Popen[bytes], output: Path, seconds: int) -> None:
    """Wait until the process has ended, or a while after it has written the result of its last test.

    At their end, test programs wait for minutes for goroutines, of which those of the replaced servers never end.
    """
    deadline = time.monotonic() + seconds
    finished = False
    with output.open("rb") as file:
        while process.poll() is None and time.monotonic() < deadline:
            if not finished and _FINISHED.search(file.read()):
                finished, deadline = True, min(deadline, time.monotonic() + _GRACE)
            time.sleep(0.2)


@contextmanager
def _etcd(package: Package, directory: Path) -> Iterator[dict[str, str]]:
    """Run an etcd for the tests of packages that start none. Yield the variable that names it."""
    if not package.needs_etcd:
        yield {}
        return
    with running_etcd(directory / "etcd") as member:
        yield {"KUBE_INTEGRATION_ETCD_URL": member.url}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the test program with the servers that it has left behind."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(workspace: Workspace, logs: Path | None) -> dict[str, str]:
    binaries = Path(sys.executable).parent
    return {
        **os.environ,
        "PATH": f"{Path(etcd_36()).parent}:{os.environ['PATH']}",
        # Upstream looks for fixtures beside its source files. Their names are without a directory in these programs.
        "TEST_SRCDIR": str(workspace.module_cache),
        "TEST_WORKSPACE": ".",
        "UPSTREAM_SERVER": str(binaries / "tetrapod-kube-apiserver"),
        "UPSTREAM_LOGS": str(logs or ""),
    }
