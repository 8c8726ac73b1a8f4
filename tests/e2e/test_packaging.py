"""The wheel in empty environments: with the lowest and highest versions of what it needs, and run by uvx and pipx."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.console import running_console
from support.kubectl import Kubectl, wait_established
from support.server import end, free_port, wait_ready
from support.wheel import UV


@contextmanager
def up(command: list[str], directory: Path) -> Iterator[Kubectl]:
    """Run `tetrapod up` from another environment, and yield its administrator's kubectl."""
    port, log = free_port(), directory / "server.log"
    flags = ["--data-dir", str(directory / "data"), "--bind-address=127.0.0.1", f"--secure-port={port}"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # the wheel, not this checkout
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "up", *flags], stdout=out, stderr=out, cwd=directory, env=env)
    try:
        wait_ready(f"https://127.0.0.1:{port}", process, log)
        yield Kubectl(directory, directory / "data" / "kubeconfig")
    finally:
        end(process)


def walk(kubectl: Kubectl, manifests: Path) -> None:
    """Write, read, apply and delete built-in and custom resources, in JSON, YAML and as tables."""
    kubectl("create", "configmap", "a", "--from-literal=k=v")
    kubectl("apply", "--server-side", "-f", str(manifests / "web.yaml"))
    kubectl("apply", "-f", str(manifests / "crd.yaml"))
    wait_established(kubectl, "widgets.e2e.example.com")
    assert "configmap/a" in kubectl("get", "configmaps", "-o", "name")
    assert "0/2" in kubectl("get", "deployment", "web")
    assert "KIND:" in kubectl("explain", "deployment.spec")
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    kubectl("delete", "configmap", "a")


@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_wheel_serves_with_any_version_of_what_it_needs(
    wheel: Path, tmp_path: Path, manifests: Path, resolution: str
) -> None:
    environment = tmp_path / "environment"
    subprocess.run([*UV, "venv", "--python", sys.executable, str(environment)], check=True)
    install = [*UV, "pip", "install", "--python", str(environment / "bin/python"), "--resolution", resolution]
    subprocess.run([*install, str(wheel)], check=True)
    program = str(environment / "bin/tetrapod")
    with up([program], tmp_path) as kubectl:
        walk(kubectl, manifests)
        kubeconfig = tmp_path / "data" / "kubeconfig"
        bare = subprocess.run(
            [program, "console", "--kubeconfig", str(kubeconfig)], capture_output=True, text=True, check=False
        )
        assert bare.returncode == 1
        assert "the console needs more packages: pip install 'tetrapod-apiserver[console]'" in bare.stderr
        subprocess.run([*install, f"{wheel}[console]"], check=True)
        with running_console(kubeconfig, program=program) as console:
            assert console.ask("/")[0] == console.ask("/static/console.js")[0] == 200
            assert "cacher.Get" in console.ask("/trace?path=/api/v1/namespaces/default")[2].decode()
            assert next(state for name, state in console.states() if name == "apiservices")["error"] is None


def test_uvx_runs_the_wheel(wheel: Path, tmp_path: Path, manifests: Path) -> None:
    uvx = [*UV, "tool", "run", "--isolated", "--python", sys.executable, "--from", str(wheel), "tetrapod"]
    with up(uvx, tmp_path) as kubectl:
        walk(kubectl, manifests)


def test_pipx_runs_the_wheel(wheel: Path, tmp_path: Path, manifests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPX_HOME", str(tmp_path / "pipx"))
    pipx = [sys.executable, "-m", "pipx", "run", "--python", sys.executable, "--spec", str(wheel), "tetrapod"]
    with up(pipx, tmp_path) as kubectl:
        walk(kubectl, manifests)


@pytest.mark.parametrize("version", ["3.11", "3.14"])
@pytest.mark.parametrize(
    "platform",
    ["windows", "aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"],
)
def test_wheel_needs_no_compiler_on_any_platform(wheel: Path, platform: str, version: str) -> None:
    """All packages that the wheel needs exist as wheels there. uvloop is not needed on Windows, where it has none."""
    compile_wheels = ["pip", "compile", "--no-header", "--no-annotate", "--only-binary", ":all:", "-"]
    resolved = subprocess.run(
        [*UV, *compile_wheels, "--python-platform", platform, "--python-version", version],
        input=f"tetrapod-apiserver[console,pydantic] @ {wheel.as_uri()}",
        capture_output=True,
        text=True,
        check=False,
    )
    assert resolved.returncode == 0, resolved.stderr
    assert ("uvloop==" in resolved.stdout) == (platform != "windows")
    assert "cryptography==" in resolved.stdout
