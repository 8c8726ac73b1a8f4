"""A project of `tetrapod init`, used as its README says, in an environment with the wheel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.kubectl import Kubectl
from support.server import end, free_port, wait_ready
from support.waiting import until
from support.wheel import UV

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Project:
    """A project, and the environment in which the wheel is installed.

    Attributes:
        port: the port of the project's server.
        kube_port: the port of the Kubernetes API server, instead of 6443.
    """

    environment: Path
    directory: Path
    port: int
    kube_port: int

    def run(self, *command: str, fails: bool = False) -> str:
        done = subprocess.run(
            command, cwd=self.directory, env=self.env(), capture_output=True, text=True, check=False, timeout=200
        )
        assert (done.returncode != 0) is fails, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def shell(self, commands: str) -> str:
        return self.run("bash", "-euo", "pipefail", "-c", commands)

    def env(self) -> dict[str, str]:
        path = f"{self.environment / 'bin'}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**kept, "PATH": path, "HOME": str(self.directory)}

    def block(self, beginning: str) -> str:
        """Return the commands of the README that begin so."""
        text = (self.directory / "README.md").read_text()
        (block,) = [each for each in BLOCK.findall(text) if each.startswith(beginning)]
        return str(block)

    def check(self) -> str:
        """Run the tests, the linter and the type checker as the README says, and return their output."""
        commands = self.block("python -m venv").splitlines()[2:]
        assert [line.split()[0] for line in commands] == ["pytest", "ruff"]
        return self.shell("\n".join(commands))

    @contextmanager
    def serving(self, *command: str, port: int) -> Iterator[None]:
        log = self.directory / "data" / f"{command[0]}.log"
        log.parent.mkdir(exist_ok=True)
        program = [str(self.environment / "bin" / command[0]), *command[1:]]
        with log.open("ab") as out:
            process = subprocess.Popen(program, cwd=self.directory, env=self.env(), stdout=out, stderr=out)
        try:
            wait_ready(f"https://127.0.0.1:{port}", process, log)
            yield
        finally:
            end(process)

    @contextmanager
    def registered(self) -> Iterator[Kubectl]:
        """Run the server and register it as the README says."""
        with self.serving(*self.block("library --kubeconfig").split(), port=self.port):
            self.shell(self.block("export KUBECONFIG"))
            yield Kubectl(self.directory, self.directory / "data" / "kubeconfig")

    def check_apiserver(self, group_version: str) -> str:
        return self.run("tetrapod", "check-apiserver", f"https://localhost:{self.port}", group_version)


@pytest.fixture
def project(wheel: Path, tmp_path: Path) -> Project:
    environment = tmp_path / "environment"
    subprocess.run([*UV, "venv", "--python", sys.executable, str(environment)], check=True)
    install(environment, [str(wheel)])
    assert not list(environment.glob("lib/*/site-packages/pydantic")), "the wheel needs no pydantic"
    made = Project(environment, tmp_path / "library", free_port(), free_port())
    names = ["library", "--group", "library.example.com", "--kind", "Book", f"--port={made.port}"]
    subprocess.run([str(environment / "bin/tetrapod"), "init", *names], cwd=tmp_path, check=True)
    install(environment, ["--find-links", str(wheel.parent), "--editable", f"{made.directory}[dev]"])
    return made


def install(environment: Path, packages: Sequence[str]) -> None:
    subprocess.run([*UV, "pip", "install", "--python", str(environment / "bin/python"), *packages], check=True)


def use(kubectl: Kubectl, resource: str, kind: str) -> None:
    """Create, read, watch and delete an object of the project."""
    plural, version = resource.split(".")[:2]
    api_version = f"library.example.com/{version}"
    spec = {"title": "Ahab", "size": 3}
    manifest = json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    kubectl("create", "-f", "-", stdin=manifest)
    assert re.search(r"^a +Ahab +3 +\S+$", kubectl("get", resource, "--no-headers"), re.MULTILINE)
    events = kubectl("get", resource, "a", "--watch", "-o", "name", "--request-timeout=2s")
    assert events.split() == [f"{kind.lower()}.library.example.com/a"]
    assert "title" in kubectl("explain", f"{plural}.spec")
    kubectl("delete", resource, "a")
    assert kubectl.fails("get", resource, "a").startswith("Error from server (NotFound)")


def test_a_project_is_built_run_deployed_and_extended_as_its_readme_says(project: Project) -> None:
    assert "5 passed" in project.check()
    flags = ["--bind-address=127.0.0.1", f"--secure-port={project.kube_port}"]
    with project.serving(*project.block("tetrapod up").split(), *flags, port=project.kube_port):
        with project.registered() as kubectl:
            assert "book-sample" in kubectl("get", "books")
            use(kubectl, "books.v1alpha1.library.example.com", "Book")
            assert " 0 failed" in project.check_apiserver("library.example.com/v1alpha1")

        project.run("tetrapod", "create", "api", "--version", "v1", "--kind", "Book")
        project.run(
            "tetrapod", "create", "api", "--version", "v1", "--kind", "Shelf", "--plural=shelves", "--cluster-scoped"
        )
        assert "passed" in project.check()
        with project.registered() as kubectl:
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
