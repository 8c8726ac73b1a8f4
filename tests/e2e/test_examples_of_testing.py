"""The example projects of docs/how-to/testing.md, run as users run them: an envtest suite in Go, a pytest suite in
Python.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.server import SERVICES, environment

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
SCRIPTS = {"etcd": "etcd_stand_in", "kube-apiserver": "kube_apiserver"}


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """Return a directory for KUBEBUILDER_ASSETS."""
    directory = tmp_path / "assets"
    directory.mkdir()
    for name, module in SCRIPTS.items():
        script = directory / name
        script.write_text(f"#!{sys.executable}\nfrom tetrapod.cli.{module} import main\nmain()\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return directory


@pytest.fixture(scope="module")
def suite() -> Path:
    """Build the suite in a cached directory, so that a second run reuses it."""
    if shutil.which("go") is None:
        pytest.skip("Go is not on this machine")
    target = Path(os.environ.get("TETRAPOD_CACHE") or Path.home() / ".cache/tetrapod") / "operator.test"
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["go", "test", "-c", "-trimpath", "-buildvcs=false", "-o", str(target), "."]
    subprocess.run(command, cwd=EXAMPLES / "operator-go", env={**os.environ, "GOFLAGS": "-mod=readonly"}, check=True)
    return target


@pytest.mark.timeout(900)  # the first build on a machine takes minutes
def test_envtest_uses_tetrapod_as_its_control_plane(suite: Path, assets: Path) -> None:
    environment_ = {
        **environment(),
        "KUBEBUILDER_ASSETS": str(assets),
        "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": "100s",
    }
    done = subprocess.run(
        [suite, "-test.v"], cwd=EXAMPLES / "operator-go", env=environment_, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^--- PASS", done.stdout, re.MULTILINE)) == 5
    assert re.search(r"^envtest: stopped in \d+ ms$", done.stdout, re.MULTILINE)


def run_suite(name: str, timeout: float = 100) -> str:
    """Run the pytest suite of an example, which must pass, and return its output."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "tetrapod.testing.plugin", "-p", "no:cacheprovider"]
    environment_ = {**os.environ, "PYTHONPATH": str(SERVICES), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        argv, cwd=EXAMPLES / name, env=environment_, capture_output=True, text=True, check=False, timeout=timeout
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_pytest_suite_of_an_operator() -> None:
    pytest.importorskip("kubernetes")
    assert "6 passed" in run_suite("operator-python")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_sample_controller_with_kopf_and_with_the_plain_client() -> None:
    pytest.importorskip("kubernetes")
    pytest.importorskip("kopf")
    assert "10 passed" in run_suite("sample-controller", timeout=280)
