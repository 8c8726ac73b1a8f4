"""Fixtures that share one server between all tests of a kind and give each test its own namespace.

E2E_KUBECONFIG may name the kubeconfig of a running server, such as the four services. The tests then use that server.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from support.kubectl import Kubectl
from support.server import running
from support.wheel import build_wheel

FLAGS = ("--enable-bootstrap-token-auth", "--service-cluster-ip-range=10.0.0.0/16")
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Target:
    """The server under test: its URL, its CA file and the administrator's kubeconfig."""

    url: str
    ca: Path
    kubeconfig: Path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    given = os.environ.get("E2E_KUBECONFIG")
    if given:
        yield target_of(Path(given), tmp_path_factory.mktemp("ca"))
        return
    with running(tmp_path_factory.mktemp("e2e"), *FLAGS) as server:
        yield Target(server.url, server.ca, server.kubeconfig)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def target_of(kubeconfig: Path, directory: Path) -> Target:
    """Return the server and CA of a kubeconfig that our server wrote (JSON, with inline data)."""
    cluster = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
    ca = directory / "ca.crt"
    ca.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    return Target(cluster["server"], ca, kubeconfig)


@pytest.fixture(scope="session")
def admin(server: Target, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(tmp_path_factory.mktemp("home"), server.kubeconfig)


@pytest.fixture
def kubectl(admin: Kubectl) -> Iterator[Kubectl]:
    """Yield kubectl in a new namespace, which is deleted afterwards without waiting for the end of the deletion."""
    namespace = f"test-{os.getpid()}-{next(_numbers)}"
    admin("create", "namespace", namespace)
    # The service account that pods need is created shortly after its namespace.
    admin.exists(f"--namespace={namespace}", "serviceaccount/default")
    yield replace(admin, namespace=namespace)
    admin("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="session")
def manifests() -> Path:
    return Path(__file__).parent / "manifests"
