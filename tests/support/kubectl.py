"""Run kubectl as a user would: with its own home directory and one kubeconfig, returning text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.server import without_cluster
from support.waiting import until


@dataclass(frozen=True)
class Kubectl:
    """A kubectl configuration.

    Attributes:
        namespace: the default namespace of every command.
        environment: variables that override those of the test process.
    """

    home: Path
    kubeconfig: Path | None
    namespace: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def run(
        self, *args: str, stdin: str = "", env: dict[str, str] | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl and return the result, also if it failed."""
        return subprocess.run(
            [*self.command(), *args],
            input=stdin,
            env=self.env(env),
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )

    def __call__(self, *args: str, stdin: str = "", env: dict[str, str] | None = None, timeout: float = 60) -> str:
        """Run kubectl and return its output; fail the test if the command fails."""
        done = self.run(*args, stdin=stdin, env=env, timeout=timeout)
        assert done.returncode == 0, (
            f"kubectl {' '.join(args)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        )
        return done.stdout

    def fails(self, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
        """Run kubectl and return its error output; fail the test if the command succeeds."""
        done = self.run(*args, stdin=stdin, env=env)
        assert done.returncode != 0, f"kubectl {' '.join(args)} succeeded:\n{done.stdout}"
        return done.stderr

    def exists(self, *args: str, timeout: float = 30) -> None:
        """Wait until an object exists.

        The older kubectls in the test matrix do not have `kubectl wait --for=create`.
        """
        deadline = time.monotonic() + timeout
        while self.run("get", *args).returncode != 0:
            assert time.monotonic() < deadline, f"{' '.join(args)} does not exist after {timeout} s"
            time.sleep(0.1)

    def json(self, *args: str) -> Any:
        return json.loads(self(*args, "-o", "json"))

    def command(self) -> list[str]:
        return [executable(), *(["--namespace", self.namespace] if self.namespace else [])]

    def env(self, more: dict[str, str] | None = None) -> dict[str, str]:
        config = {"KUBECONFIG": str(self.kubeconfig)} if self.kubeconfig else {"KUBECONFIG": "/dev/null"}
        return {**without_cluster(), "HOME": str(self.home), **config, **self.environment, **(more or {})}


def executable() -> str:
    """Return the path of kubectl; skip the test if it is not installed (tools/prepare.sh installs it)."""
    cached = Path(os.environ.get("TETRAPOD_CACHE") or Path.home() / ".cache/tetrapod") / "bin/kubectl"
    path = shutil.which("kubectl") or (str(cached) if cached.exists() else None)
    if path is None:
        pytest.skip("kubectl is not on this machine; tools/prepare.sh installs it")
    return path


def wait_established(kubectl: Callable[..., str], definition: str, timeout: float = 60) -> None:
    """Wait until a CRD is established. `kubectl wait` gives up on a CRD that has no conditions yet."""
    until(
        lambda: json.loads(kubectl("get", f"crd/{definition}", "-o=json")).get("status", {}).get("conditions") or [],
        lambda conditions: any((c["type"], c["status"]) == ("Established", "True") for c in conditions),
        timeout=timeout,
        description=definition,
    )


def create_widget(kubectl: Kubectl, definition: Path) -> None:
    """Create the definition of `widgets.e2e.example.com`, and a custom resource of it as soon as it is served."""
    kubectl("apply", "-f", str(definition))
    wait_established(kubectl, "widgets.e2e.example.com")
    widget = {"apiVersion": "e2e.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    until(
        lambda: kubectl.run("apply", "-f", "-", stdin=json.dumps(widget)).returncode == 0,
        description="the custom resource",
    )
