"""A project of `tetrapod init`, used as its README says, in an environment with the wheel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.kubectl import Kubectl
from support.scaffold import Project, install, new_project, use
from support.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def project(wheel: Path, tmp_path: Path) -> Project:
    made = new_project(wheel, tmp_path)
    assert not list(made.environment.glob("lib/*/site-packages/pydantic")), "the wheel needs no pydantic"
    install(made.environment, ["--find-links", str(wheel.parent), "--editable", f"{made.directory}[dev]"])
    return made


def check(project: Project) -> str:
    """Run the tests, the linter and the type checker as the README says, and return their output."""
    commands = project.block("python -m venv").splitlines()[2:]
    assert [line.split()[0] for line in commands] == ["pytest", "ruff"]
    return project.shell("\n".join(commands))


@contextmanager
def registered(project: Project) -> Iterator[Kubectl]:
    """Run the server and register it as the README says."""
    with project.serving(*project.block("library --kubeconfig").split(), port=project.port):
        project.shell(project.block("export KUBECONFIG"))
        yield project.kubectl


def test_a_project_is_built_run_and_extended_as_its_readme_says(project: Project) -> None:
    assert "5 passed" in check(project)
    with project.api_server():
        with registered(project) as kubectl:
            assert "book-sample" in kubectl("get", "books")
            use(kubectl, "books.v1alpha1.library.example.com", "Book")
            assert " 0 failed" in project.check_apiserver("library.example.com/v1alpha1")

        project.run("tetrapod", "create", "api", "--version", "v1", "--kind", "Book")
        project.run(
            "tetrapod", "create", "api", "--version", "v1", "--kind", "Shelf", "--plural=shelves", "--cluster-scoped"
        )
        assert "passed" in check(project)
        with registered(project) as kubectl:
            use(kubectl, "books.v1.library.example.com", "Book")
            use(kubectl, "shelves.v1.library.example.com", "Shelf")
            assert "book-sample" in kubectl("get", "books.v1.library.example.com")
            for version in ("v1", "v1alpha1"):
                assert " 0 failed" in project.check_apiserver(f"library.example.com/{version}")
            deploy(kubectl, project.directory / "manifests")


def deploy(kubectl: Kubectl, manifests: Path) -> None:
    """Apply the manifests of the cluster. Its roles are tried with the server that runs on this machine."""
    kubectl("apply", "-f", str(manifests / "server/roles.yaml"))
    kubectl("create", "rolebinding", "jane", "--clusterrole=view", "--user=jane")
    listed = until(lambda: kubectl.run("get", "books", "--as=jane", "-o", "name"), lambda done: done.returncode == 0)
    assert listed.stdout.split() == ["book.library.example.com/book-sample"]
    assert "cannot create resource" in kubectl.fails(
        "create", "-f", str(manifests / "samples/book_v1.yaml"), "--as=jane"
    )
    # The Service is in the Namespace, and may be gone with it.
    kubectl("delete", "--ignore-not-found", "-f", str(manifests / "local"))
    assert "deployment.apps/library created" in kubectl("apply", "-f", str(manifests / "server"))
