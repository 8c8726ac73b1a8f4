"""One server without its own controllers, upstream's controller manager and scheduler, and three simulated nodes.

STOCK_TARGET may name a running server with its own components, such as a real one, as URL=DIRECTORY, where the
directory has `kubeconfig` and `ca.crt`. The expectations of these tests were found that way.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import Target
from support.nodes import Nodes, nodes
from support.server import running
from support.stock import Component, Keys, stock_components
from support.waiting import until
from support.wire import Answer, Client

TOKENS = Path(__file__).parents[2] / "contract" / "tokens.csv"
FLAGS = (
    f"--token-auth-file={TOKENS}",
    "--enable-bootstrap-token-auth",
    "--enable-aggregator-routing",
    "--controllers=-*",
)
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Cluster:
    target: Target
    components: list[Component]

    def client(self) -> Client:
        return Client(self.target)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    given = os.environ.get("STOCK_TARGET")
    if given:
        url, path = given.split("=", 1)
        yield Cluster(Target(url, Path(path) / "ca.crt", Path(path) / "kubeconfig"), [])
        return
    directory = tmp_path_factory.mktemp("stock")
    with running(directory / "data", *FLAGS) as server:
        pki = server.data_dir / "pki"
        keys = Keys(pki / "sa.key", pki / "client-ca.crt", pki / "client-ca.key", pki / "ca.crt")
        with stock_components(directory, server.kubeconfig, keys) as components:
            yield Cluster(Target(server.url, server.ca, server.kubeconfig), components)


@pytest.fixture(scope="session")
def kubelets(cluster: Cluster) -> Iterator[Nodes]:
    with cluster.client() as client, nodes(client, "node-a", "node-b", "node-c") as found:
        yield found


class Space:
    """A namespace for one test, with shortcuts for requests in it."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name

    def path(self, resource: str, name: str = "", subresource: str = "") -> str:
        """Return the request path of an object; `resource` is `pods` or `apps/v1/deployments`, for example."""
        prefix, _, plural = resource.rpartition("/")
        root = f"/apis/{prefix}" if prefix else "/api/v1"
        return "/".join(part for part in (f"{root}/namespaces/{self.name}/{plural}", name, subresource) if part)

    def create(self, resource: str, obj: Any) -> Any:
        return must(self.client("POST", self.path(resource), obj), 201)

    def get(self, resource: str, name: str = "") -> Any:
        return must(self.client("GET", self.path(resource, name)), 200)

    def items(self, resource: str, selector: str = "") -> list[Any]:
        query = f"?labelSelector={selector}" if selector else ""
        found: list[Any] = must(self.client("GET", self.path(resource) + query), 200)["items"]
        return found

    def patch(self, resource: str, name: str, patch: Any, subresource: str = "") -> Any:
        headers = {"Content-Type": "application/merge-patch+json"}
        return must(self.client("PATCH", self.path(resource, name, subresource), patch, headers), 200)

    def delete(self, resource: str, name: str, policy: str = "Background") -> None:
        must(self.client("DELETE", self.path(resource, name), {"propagationPolicy": policy}), 200, 202)

    def until(self, resource: str, name: str, predicate: Callable[[Any], Any], timeout: float = 60) -> Any:
        """Wait until the object meets a condition."""
        return until(lambda: self.get(resource, name), predicate, timeout=timeout)

    def until_gone(self, resource: str, name: str, timeout: float = 60) -> None:
        until(
            lambda: self.client("GET", self.path(resource, name)).status, lambda status: status == 404, timeout=timeout
        )


def must(answer: Answer, *codes: int) -> Any:
    assert answer.status in codes, (answer.status, answer.body[:2000])
    return answer.json


def condition(obj: Any, kind: str) -> str:
    return next((c["status"] for c in obj.get("status", {}).get("conditions") or () if c["type"] == kind), "")


def template(labels: dict[str, str], **spec: Any) -> Any:
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec}}


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with cluster.client() as client:
        yield client


@pytest.fixture
def space(client: Client, kubelets: Nodes) -> Iterator[Space]:
    """Wait for the default service account, which the stock controller manager creates."""
    name = f"stock-{os.getpid()}-{next(_numbers)}"
    must(client("POST", "/api/v1/namespaces", {"metadata": {"name": name}}), 201)
    found = Space(client, name)
    until(lambda: client("GET", found.path("serviceaccounts", "default")).status, lambda status: status == 200)
    yield found
    assert kubelets.failure is None
    client("DELETE", f"/api/v1/namespaces/{name}")
