"""The unmodified client-go: typed clients (protobuf), shared informers, the dynamic client."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.goprogram import build_go_program
from support.kubectl import Kubectl, wait_established

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
