"""Programs of other projects, built from their Go modules, and the manifests in these modules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.etcd import path_from
from support.goprogram import build_go_program
from support.kubectl import Kubectl
from support.server import end, without_cluster

TOOLS = Path(__file__).parents[2] / "tools"


def installed(package: str, version: str) -> Path:
    """Build a program that `go install` can build, and return its path."""
    _require_go()
    name = re.sub(r"/v\d+$", "", package).rpartition("/")[2]
    return Path(path_from("go_install.sh", f"{name}-{version}", f"{package}@{version}"))


def built(name: str, package: str = ".") -> Path:
    """Build a program from the versions in tools/neighbours/NAME/go.mod, and return its path."""
    source = TOOLS / "neighbours" / name
    return build_go_program(source, name, package)


def files(module: str, version: str) -> Path:
    """Return the directory of a module in the Go module cache."""
    _require_go()
    argv = ["go", "mod", "download", "-json", f"{module}@{version}"]
    done = subprocess.run(argv, cwd="/", env={**os.environ, "GOFLAGS": ""}, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])


def files_of(name: str, module: str) -> Path:
    """Return the directory of a module of the version in tools/neighbours/NAME/go.mod."""
    argv = ["go", "list", "-m", "-f", "{{.Dir}}", module]
    done = subprocess.run(argv, cwd=TOOLS / "neighbours" / name, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def _require_go() -> None:
    if shutil.which("go") is None:
        pytest.skip("Go is not on this machine")


@contextmanager
def program(log: Path, *argv: str | Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program, terminate it at the end, and print the end of its log if the test failed."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(arg) for arg in argv], stdout=out, stderr=out, env={**without_cluster(), **environment}
        )
    try:
        yield process
    finally:
        end(process)
        print(f"--- {log.name}\n{log.read_text()[-6000:]}")  # pytest shows it for a failure only


def as_service_account(kubectl: Kubectl, directory: Path, namespace: str, name: str) -> Path:
    """Write a kubeconfig whose user is a service account, and return its path."""
    assert kubectl.kubeconfig is not None
    config = json.loads(kubectl.kubeconfig.read_text())
    token = kubectl("create", "token", name, f"--namespace={namespace}").strip()
    config["users"][0]["user"] = {"token": token}
    path = directory / f"{name}.kubeconfig"
    path.write_text(json.dumps(config))
    return path
