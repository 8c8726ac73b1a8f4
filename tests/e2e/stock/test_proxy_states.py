"""The rules of `tetrapod proxy` equal those of kube-proxy, over generated states (`make proxy-states` runs more)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.settings import ROOT
from support.server import SERVICES

pytestmark = [pytest.mark.stock, pytest.mark.timeout(900)]


def test_rules_equal_those_of_kube_proxy_over_generated_states(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not applicable: only root can make network namespaces")
    environment = {**os.environ, "PYTHONPATH": f"{SERVICES}:{ROOT / 'tests'}"}
    output = tmp_path / "output"  # not a pipe, which processes of a namespace could keep open
    with output.open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "proxy_states", "--seed=5", "--cases=4", "--steps=8"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=800,
            check=False,
        )
    text = output.read_text()
    assert done.returncode == 0, text
    (kinds,) = (line for line in text.splitlines() if line.startswith("states with rules of a kind: "))
    assert " 0" not in kinds
