"""Build the Go programs that tests use."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def build_go_program(source: Path, name: str, package: str = ".") -> Path:
    """Build a package from a module and return the program.

    It stays in the cache directory, so that a second run finds it up to date. Modules come through the Go module proxy.
    The test is skipped where Go is absent.
    """
    if shutil.which("go") is None:
        pytest.skip("Go is not on this machine")
    target = Path(os.environ.get("TETRAPOD_CACHE") or Path.home() / ".cache/tetrapod") / name
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-o", str(target), package]
    subprocess.run(command, cwd=source, env={**os.environ, "GOFLAGS": "-mod=readonly"}, check=True)
    return target
