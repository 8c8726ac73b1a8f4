"""The installed pytest plugin, in separate pytest runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.server import SERVICES

LAZY = """
import sys

def test_nothing_is_imported_before_it_is_asked_for():
    assert "tetrapod.testing.plugin" in sys.modules
    assert not {"tetrapod.testing.server", "tetrapod.apps.embedded", "uvloop", "asyncio"} & set(sys.modules) - PRESENT
"""
USING = """
import pytest

@pytest.fixture(scope="session")
def tetrapod_manifests():
    return "apiVersion: v1\\nkind: Namespace\\nmetadata: {name: given}\\n"

@pytest.mark.parametrize("run", [1, 2, 3])
def test_each_test_finds_what_the_first_found(tetrapod, run):
    assert tetrapod.client.get("v1", "Namespace", "given")["status"]["phase"] == "Active"
    tetrapod.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    tetrapod.fork()

def test_forks_went_with_their_tests(tetrapod):
    assert tetrapod._forks == []
    assert tetrapod.kubeconfig.is_file()
"""


def pytest_of(directory: Path, text: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(text)
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tetrapod.testing.plugin",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
    ]
    argv += [
        "-p",
        "no:xdist",
        "-p",
        "no:hypothesispytest",
        "-p",
        "no:anyio",
        "-W",
        "error",
        "--rootdir",
        str(directory),
        str(directory),
    ]
    environment = {**os.environ, "PYTHONPATH": str(SERVICES), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        argv, capture_output=True, text=True, cwd=directory, env=environment, check=False, timeout=100
    )


def test_the_plugin_imports_nothing_where_no_test_uses_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("")
    done = pytest_of(tmp_path, LAZY.replace("PRESENT", "set()"))
    assert done.returncode == 0, done.stdout


def test_fixtures_give_each_test_a_fresh_server(tmp_path: Path) -> None:
    done = pytest_of(tmp_path, USING)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_it_is_published_by_an_entry_point() -> None:
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ntetrapod = "tetrapod.testing.plugin"' in project
