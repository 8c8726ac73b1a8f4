"""docs/tutorials/aggregated-server.md executed: every program is written to its file, and every command must
succeed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.pages import ROOT, blocks
from support.server import SERVICES, Server, free_port, running

DOCUMENT = ROOT / "docs/tutorials/aggregated-server.md"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path / "cluster") as server:
        yield server


PRELUDE = """
set -e
trap 'kill $(jobs -p)' EXIT
pip() { :; }  # everything is installed
library() { exec python -m library "$@"; }
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
pytest() { PYTHONPATH=$PYTHONPATH:. python -m pytest -q -p no:cacheprovider -p tetrapod.testing.plugin "$@"; }
"""


def script() -> str:
    """Return the tutorial's commands with free ports. Its programs are written to their files in between."""
    commands = [PRELUDE]
    for language, block in blocks(DOCUMENT):
        if language == "python":
            name = re.match(r"# (\S+\.py)\n", block)
            assert name, "a program begins with its file's name"
            commands.append(f"cat > {name[1]} <<'PROGRAM'\n{block}PROGRAM\n")
        elif language != "sh" and "export KUBECONFIG=" not in block:  # its environment and server are the test's
            commands.append(block)
    text = "\n".join(commands)
    for port in sorted(set(re.findall(r"--secure-port (\d+)", text))):
        text = text.replace(port, str(free_port()))
    return text


@pytest.mark.timeout(300)
def test_the_tutorial_works_as_written(server: Server, tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed (tools/prepare.sh)")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(SERVICES),
        "KUBECONFIG": str(server.kubeconfig),
        "HOME": str(tmp_path),
    }
    commands = script()
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["bash", "-x", "-c", commands],
            cwd=tmp_path,
            env=environment,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            code = process.wait(240)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert code == 0, log.read_text()[-6000:]
