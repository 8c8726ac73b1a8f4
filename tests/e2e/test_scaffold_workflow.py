"""The CI workflow of a project of `tetrapod init`: the commands of each job in order, in a clone, with a new Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.compose import docker, docker_stand_in
from support.scaffold import Project, new_project
from support.server import free_port

ACTIONS = ("actions/checkout@", "actions/setup-python@")
"""The actions that the test does in their place: a clone, and an environment with pip."""


@pytest.fixture
def project(wheel: Path, tmp_path: Path) -> Project:
    """Return a project whose directory is a clone of the committed project, and whose environment has only pip."""
    made = new_project(wheel, tmp_path, f"library{free_port()}")
    made.run("git", "init", "--quiet")
    made.run("git", "add", ".")
    made.run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=Begin")
    clone, python = tmp_path / "clone", tmp_path / "python"
    made.run("git", "clone", "--quiet", str(made.directory), str(clone))
    subprocess.run([sys.executable, "-m", "venv", str(python)], check=True)
    return replace(made, directory=clone, environment=python)


def commands(project: Project, job: str) -> Iterator[str]:
    """Yield the commands of a job."""
    workflow: Any = yaml.safe_load((project.directory / ".github/workflows/ci.yml").read_text())
    for step in workflow["jobs"][job]["steps"]:
        assert "run" in step or step["uses"].startswith(ACTIONS), step
        if "run" in step:
            assert "${{" not in step["run"], "expressions are not evaluated here"
            yield step["run"]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_each_step_of_the_job_test_succeeds(project: Project) -> None:
    output = [project.shell(command) for command in commands(project, "test")]
    assert "5 passed" in output[-1]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_job_test_fails_for_an_error_of_each_kind(project: Project) -> None:
    install, lint, types, tests = commands(project, "test")
    project.shell(install)
    package = project.directory / project.name
    rules, main = package / "book/strategy.py", package / "__main__.py"
    for file, right, wrong, command in (
        (main, "from tetrapod", "import os\nfrom tetrapod", lint),
        (main, "-> None", "-> int", types),
        (rules, "if size < used", "if size > used", tests),
    ):
        text = file.read_text()
        assert right in text
        file.write_text(text.replace(right, wrong))
        project.run("bash", "-ec", command, fails=True)
        file.write_text(text)


@pytest.mark.containers
@pytest.mark.timeout(600)
def test_each_step_of_the_job_image_succeeds(project: Project, tmp_path: Path) -> None:
    path = f"{docker_stand_in(tmp_path)}:{project.env()['PATH']}"
    try:
        output = [replace(project, variables={"PATH": path}).shell(command) for command in commands(project, "image")]
        assert "--kubeconfig" in output[-1]
    finally:
        docker("image", "rm", "--force", project.name)
