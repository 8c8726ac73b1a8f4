"""A server of its own for each file, so that a neighbour's definitions and webhooks are of its own tests only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.kubectl import Kubectl
from support.server import Server, running
from support.services import Services, running_services

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
    """Run one process over SQLite, or the four services over etcd with FORM=four in the environment."""
    directory = tmp_path_factory.mktemp("neighbour")
    with _server(directory / "data") as server:
        kubectl = Kubectl(directory, server.kubeconfig)
        kubectl.exists("serviceaccount/default")
        yield Site(server.url, server.ca, kubectl, directory)


@contextmanager
def _server(directory: Path) -> Iterator[Server | Services]:
    tokens, routing = f"--token-auth-file={TOKENS}", "--enable-aggregator-routing"
    if os.environ.get("FORM") == "four":
        directory.mkdir()
        calling = dict.fromkeys(("aggregator", "core", "extensions"), (routing,))
        with running_services(directory, auth=(tokens, routing), **calling) as services:
            yield services
    else:
        with running(directory, tokens, routing) as server:
            yield server
