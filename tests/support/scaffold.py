"""A project of `tetrapod init`, made by the wheel in its own environment and used by the commands of its README."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copy

from support.kubectl import Kubectl
from support.pages import block
from support.server import end, free_port, wait_ready
from support.wheel import UV


@dataclass(frozen=True)
class Project:
    """A project, and the environment in which the wheel is installed.

    Attributes:
        environment: the directory of the virtual environment.
        directory: the directory of the project.
        name: its name.
        port: the port of the project's server.
        kube_port: the port of the Kubernetes API server, instead of 6443.
        variables: more environment variables of its commands.
    """

    environment: Path
    directory: Path
    name: str
    port: int
    kube_port: int
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig that `tetrapod up` writes."""
        return self.directory / "data" / "kubeconfig"

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.directory, self.kubeconfig)

    def run(self, *command: str, fails: bool = False, timeout: float = 300) -> str:
        done = subprocess.run(
            command, cwd=self.directory, env=self.env(), capture_output=True, text=True, check=False, timeout=timeout
        )
        assert (done.returncode != 0) is fails, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def shell(self, commands: str) -> str:
        return self.run("bash", "-euo", "pipefail", "-c", commands)

    def env(self) -> dict[str, str]:
        path = f"{self.environment / 'bin'}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**kept, "PATH": path, "HOME": str(self.directory), **self.variables}

    def block(self, beginning: str) -> str:
        """Return the commands of the README that begin so."""
        return block(self.directory / "README.md", beginning)

    @contextmanager
    def serving(self, *command: str, port: int) -> Iterator[None]:
        """Run a program of the environment until the end of the context, which begins when the port is ready."""
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
    def api_server(self) -> Iterator[None]:
        """Run `tetrapod up` as the README says, on a free port of the loopback interface."""
        flags = ["--bind-address=127.0.0.1", f"--secure-port={self.kube_port}"]
        with self.serving(*self.block("tetrapod up").split(), *flags, port=self.kube_port):
            yield

    def check_apiserver(self, group_version: str) -> str:
        return self.run("tetrapod", "check-apiserver", f"https://localhost:{self.port}", group_version)


def new_project(wheel: Path, directory: Path, name: str = "library") -> Project:
    """Create an environment with the wheel, and in it a project with the kind Book, below a directory.

    The wheel is in `wheels/` of the project, as an unreleased one is.
    """
    environment = directory / "environment"
    subprocess.run([*UV, "venv", "--python", sys.executable, str(environment)], check=True)
    install(environment, [str(wheel)])
    made = Project(environment, directory / name, name, free_port(), free_port())
    names = [name, "--group", "library.example.com", "--kind", "Book", f"--port={made.port}"]
    subprocess.run([str(environment / "bin/tetrapod"), "init", *names], cwd=directory, check=True)
    (made.directory / "wheels").mkdir()
    copy(wheel, made.directory / "wheels")
    return made


def install(environment: Path, packages: Sequence[str]) -> None:
    subprocess.run([*UV, "pip", "install", "--python", str(environment / "bin/python"), *packages], check=True)


def use(kubectl: Kubectl, resource: str, kind: str) -> None:
    """Create, read, watch, explain and delete an object of the project."""
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
