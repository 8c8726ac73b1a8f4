"""A server of its own for each file, so that a neighbour's definitions and webhooks are of its own tests only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.kubectl import Kubectl
from support.server import running

TOKENS = Path(__file__).parents[1] / "contract" / "tokens.csv"


@dataclass(frozen=True)
class Site:
    """A running server, the administrator's kubectl, and a directory for logs and kubeconfigs."""

    url: str
    ca: Path
    kubectl: Kubectl
    directory: Path

    @property
    def kubeconfig(self) -> Path:
        assert self.kubectl.kubeconfig is not None
        return self.kubectl.kubeconfig


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("neighbour")
    flags = (f"--token-auth-file={TOKENS}", "--enable-aggregator-routing")
    with running(directory / "data", *flags) as server:
        kubectl = Kubectl(directory, server.kubeconfig)
        kubectl.exists("serviceaccount/default")
        yield Site(server.url, server.ca, kubectl, directory)
