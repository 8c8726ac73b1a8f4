"""The Go program beside this file, built once. Without Go these tests are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "goclient"


@pytest.fixture(scope="session")
def goclient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs Go")
    program = tmp_path_factory.mktemp("goclient") / "goclient"
    build = [go, "build", "-trimpath", "-buildvcs=false", "-o", str(program), "."]
    subprocess.run(build, cwd=SOURCE, check=True, env={**os.environ, "GOFLAGS": "-mod=readonly"})
    return program
