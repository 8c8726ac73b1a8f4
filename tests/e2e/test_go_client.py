"""The unmodified client-go: typed clients (protobuf), shared informers, the dynamic client."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.goprogram import build_go_program
from support.kubectl import Kubectl, wait_established
from support.server import running

SOURCE = Path(__file__).parent / "goclient"


@pytest.fixture(scope="session")
def program() -> Path:
    return build_go_program(SOURCE, "goclient")


@pytest.mark.timeout(900)  # the first build on a machine takes minutes
def test_informers_lists_watches_and_writes(program: Path, kubectl: Kubectl, admin: Kubectl, manifests: Path) -> None:
    admin("apply", "-f", str(manifests / "crd.yaml"))
    wait_established(admin, "widgets.e2e.example.com")
    done = subprocess.run(
        [program, kubectl.namespace], env=kubectl.env(), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "version 1 37",
        "informer added 1",
        "informer updated 2",
        "informer updated 3",
        "informer updated 4",
        "informer deleted",
        "deployment 2 RollingUpdate 1",
        "listed 1 5 2",
        "widget ADDED blue",
        "done",
    ]


@pytest.mark.timeout(900)
def test_two_hundred_informers_share_one_connection(program: Path, tmp_path: Path) -> None:
    with running(tmp_path / "data", "--http2-max-streams-per-connection=300") as server:
        kubectl = Kubectl(tmp_path, server.kubeconfig)
        done = subprocess.run(
            [program, "default", "200"],
            env=kubectl.env(),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "synced 200",
        "ADDED 200",
        "MODIFIED 200",
        "DELETED 200",
        "connections 1",
    ]
