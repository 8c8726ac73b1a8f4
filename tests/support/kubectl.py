"""Runs kubectl as a person would: its own home, one kubeconfig, answers as text."""

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

from support.waiting import until


@dataclass(frozen=True)
class Kubectl:
    """`namespace` is given to every command unless the command names one; `environment` is put over the test's own."""

    home: Path
    kubeconfig: Path | None
    namespace: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *args: str, stdin: str = "", env: dict[str, str] | None = None, timeout: float = 60) -> subprocess.CompletedProcess[str]:
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
        assert done.returncode == 0, f"kubectl {' '.join(args)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def fails(self, *args: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
        """Run kubectl and return its error output; fail the test if the command succeeds."""
        done = self.run(*args, stdin=stdin, env=env)
        assert done.returncode != 0, f"kubectl {' '.join(args)} succeeded:\n{done.stdout}"
        return done.stderr

    def exists(self, *args: str, patience: float = 30) -> None:
        """Wait for an object to be there; `kubectl wait --for=create` is younger than the kubectls that we test with."""
        deadline = time.monotonic() + patience
        while self.run("get", *args).returncode != 0:
            assert time.monotonic() < deadline, f"{' '.join(args)} never came"
            time.sleep(0.1)

    def json(self, *args: str) -> Any:
        return json.loads(self(*args, "-o", "json"))

    def command(self) -> list[str]:
        return [executable(), *(["--namespace", self.namespace] if self.namespace else [])]

    def env(self, more: dict[str, str] | None = None) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
        config = {"KUBECONFIG": str(self.kubeconfig)} if self.kubeconfig else {"KUBECONFIG": "/dev/null"}
        return {**kept, "HOME": str(self.home), **config, **self.environment, **(more or {})}


def executable() -> str:
    """Return the path of kubectl; skip the test if there is none (tools/prepare.sh installs one)."""
    cached = Path(os.environ.get("TETRAPOD_CACHE") or Path.home() / ".cache/tetrapod") / "bin/kubectl"
    found = shutil.which("kubectl") or (str(cached) if cached.exists() else None)
    if found is None:
        pytest.skip("kubectl is not on this machine; tools/prepare.sh installs it")
    return found


def wait_established(kubectl: Callable[..., str], definition: str, patience: float = 60) -> None:
    """Wait until a CRD is established. `kubectl wait` gives up on a CRD that has no conditions yet."""
    until(
        lambda: json.loads(kubectl("get", f"crd/{definition}", "-o=json")).get("status", {}).get("conditions") or [],
        lambda conditions: any((c["type"], c["status"]) == ("Established", "True") for c in conditions),
        patience=patience,
        what=definition,
    )
