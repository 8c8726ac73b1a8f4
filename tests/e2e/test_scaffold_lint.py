"""Projects of `tetrapod init` with names of unusual forms: they have no errors by the linters of their own CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tetrapod.cli.main import main

pytestmark = pytest.mark.timeout(300)

LONGEST = "ValidatingAdmissionPolicyBinding"
"""The longest kind of Kubernetes itself."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("my-company-library-api", LONGEST), ("zoo", "VM"), ("import-things", "Import"), ("a1", "Server")],
)
def test_a_project_has_no_errors_by_its_own_linters(tmp_path: Path, cache: Path, name: str, kind: str) -> None:
    directory = tmp_path / name
    further = ("--version=v2beta1", f"--kind={kind}"), ("--version=v1", "--kind=Shelf", "--cluster-scoped")
    for arguments in (
        ("init", name, "--group=things.example.com", "--version=v1", f"--kind={kind}"),
        *(("create", "api", *each) for each in further),
    ):
        done = CliRunner().invoke(main, [*arguments, f"--directory={directory}"])
        assert done.exit_code == 0, done.output
    for command in (
        ("ruff", "check", "--no-cache", "."),
        ("ruff", "format", "--no-cache", "--check", "."),
        ("mypy", f"--cache-dir={cache}"),
    ):
        run = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=directory,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
