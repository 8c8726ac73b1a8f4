"""One server for all tests of a kind, a namespace of its own for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.kubectl import Kubectl
from support.server import Server, running

FLAGS = ("--enable-bootstrap-token-auth", "--service-cluster-ip-range=10.0.0.0/16")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("e2e"), *FLAGS) as server:
        yield server


@pytest.fixture(scope="session")
def admin(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(tmp_path_factory.mktemp("home"), server.kubeconfig)


@pytest.fixture
def kubectl(admin: Kubectl) -> Iterator[Kubectl]:
    """In a new namespace, which goes away afterwards without being waited for."""
    namespace = f"test-{os.getpid()}-{next(_numbers)}"
    admin("create", "namespace", namespace)
    # The default service account comes a moment after its namespace; pods need it.
    admin("wait", "--for=create", f"--namespace={namespace}", "serviceaccount/default", "--timeout=20s")
    yield replace(admin, namespace=namespace)
    admin("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="session")
def manifests() -> Path:
    return Path(__file__).parent / "manifests"
