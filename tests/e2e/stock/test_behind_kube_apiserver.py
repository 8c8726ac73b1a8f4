"""Tests of deploy/examples/library, an aggregated server built with our library, behind upstream's kube-apiserver."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from e2e.stock.conftest import must
from support import kube_apiserver
from support.kube_apiserver import KubeApiserver
from support.kubectl import Kubectl
from support.server import SERVICES, free_port, wait_ready
from support.stock import binaries
from support.waiting import until
from support.wire import Client

pytestmark = [pytest.mark.stock, pytest.mark.timeout(300)]

EXAMPLE = Path(__file__).parents[3] / "deploy/examples/library"
SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1.library.example.com"
BOOKS = "/apis/library.example.com/v1/namespaces/library/books"


@dataclass(frozen=True)
class Library:
    front: KubeApiserver
    directory: Path
    port: int

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the server with the token of the service account that register.sh created, and no other credentials."""
        argv = [
            sys.executable,
            "-m",
            "library",
            f"--server={self.front.url}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
        ]
        argv += [f"--certificate-authority={self.directory / 'ca.crt'}", f"--token-file={self.directory / 'token'}"]
        argv += [f"--data-dir={self.directory / 'data'}", "--hosts=localhost,library.library.svc"]
        environment = {**os.environ, "PYTHONPATH": f"{SERVICES}:{EXAMPLE}"}
        log = self.directory / "library.log"
        with log.open("ab") as out:
            process = subprocess.Popen(argv, stdout=out, stderr=out, env=environment)
        try:
            wait_ready(f"https://localhost:{self.port}", process, log)
            yield
        finally:
            process.terminate()
            process.wait(30)

    def ask(self, path: str, headers: Mapping[str, str], *, as_front: bool) -> int:
        """Send a request to the server directly instead of through the aggregator, with or without the aggregator's
        certificate.
        """
        context = ssl.create_default_context(cafile=str(self.directory / "data/pki/ca.crt"))
        if as_front:
            context.load_cert_chain(*self.front.pki.front_proxy_client)
        connection = http.client.HTTPSConnection("localhost", self.port, context=context, timeout=20)
        try:
            connection.request("GET", path, headers=dict(headers))
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeApiserver]:
    with kube_apiserver.running(binaries()["kube-apiserver"], tmp_path_factory.mktemp("front")) as server:
        yield server


@pytest.fixture(scope="module")
def admin(front: KubeApiserver, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(tmp_path_factory.mktemp("home"), front.kubeconfig)


@pytest.fixture(scope="module")
def library(front: KubeApiserver, admin: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """Register the server, and wait until it is available."""
    found = Library(front, tmp_path_factory.mktemp("library"), free_port())
    manifests = EXAMPLE / "manifests"
    service = (manifests / "10-library.yaml").read_text().replace("externalName: library", "externalName: localhost")
    admin("apply", "-f", "-", stdin=service.replace("6443", str(found.port)))
    admin("apply", "-f", str(manifests / "20-rbac.yaml"))
    (found.directory / "ca.crt").write_bytes(front.ca.read_bytes())
    (found.directory / "token").write_text(admin("create", "token", "library", "--namespace=library").strip())
    with found.running():
        bundle = base64.b64encode((found.directory / "data/pki/ca.crt").read_bytes()).decode()
        registration = (manifests / "30-apiservice.yaml").read_text().replace("CA_BUNDLE", bundle)
        admin("apply", "-f", "-", stdin=registration.replace("6443", str(found.port)))
        admin("wait", "--for=condition=Available", "apiservice/v1.library.example.com", "--timeout=60s")
        # upstream fetches the document shortly after the service is available
        until(
            lambda: "apis/library.example.com/v1" in admin("get", "--raw", "/openapi/v3"),
            description="its OpenAPI at the front",
        )
        yield found


@pytest.fixture
def client(library: Library) -> Iterator[Client]:
    with Client(library.front) as client:
        yield client


@pytest.fixture
def kubectl(admin: Kubectl, library: Library) -> Kubectl:
    return replace(admin, namespace="library")


def book(name: str, **spec: Any) -> str:
    spec = {"title": name, "copies": 1, **spec}
    return json.dumps(
        {"apiVersion": "library.example.com/v1", "kind": "Book", "metadata": {"name": name}, "spec": spec}
    )


def test_kubectl_applies_gets_explains_and_deletes(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=book("emma", author="Jane Austen"))
    kubectl("apply", "-f", "-", stdin=book("walden"))
    assert "configured" in kubectl("apply", "-f", "-", stdin=book("walden", copies=3))
    table = kubectl("get", "bk", "emma").splitlines()
    assert [line.split()[:2] for line in table] == [["NAME", "TITLE"], ["emma", "emma"]]
    assert "book.library.example.com/walden" in kubectl("get", "all", "-o", "name")
    assert kubectl.json("get", "book", "walden")["spec"]["copies"] == 3
    assert "copies" in kubectl("explain", "book.spec")
    assert "conflict" in kubectl.fails(
        "apply", "--server-side", "--field-manager=other", "-f", "-", stdin=book("emma", author="else")
    )
    kubectl("delete", "book", "emma")
    assert "NotFound" in kubectl.fails("get", "book", "emma")


def test_schema_errors_name_the_field(kubectl: Kubectl) -> None:
    assert 'unknown field "spec.colour"' in kubectl.fails("create", "-f", "-", stdin=book("odd", colour="red"))
    assert "spec.copies" in kubectl.fails("create", "--validate=false", "-f", "-", stdin=book("many", copies="ten"))


def test_watch_events_are_passed_on_at_once(client: Client, kubectl: Kubectl) -> None:
    begun = must(client("GET", BOOKS), 200)["metadata"]["resourceVersion"]
    kubectl("create", "-f", "-", stdin=book("dune"))
    kubectl("patch", "book", "dune", "--type=merge", "--subresource=status", '--patch={"status":{"lent":1}}')
    kubectl("delete", "book", "dune")
    watched = client("GET", f"{BOOKS}?watch=1&timeoutSeconds=2&resourceVersion={begun}").body
    events = [json.loads(line) for line in watched.splitlines()]
    assert [e["type"] for e in events if e["object"]["metadata"]["name"] == "dune"] == ["ADDED", "MODIFIED", "DELETED"]


def test_discovery_and_openapi_include_it(client: Client) -> None:
    aggregated = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    found = {item["metadata"]["name"]: item for item in must(client("GET", "/apis", headers=aggregated), 200)["items"]}
    resources = {r["resource"]: r for r in found["library.example.com"]["versions"][0]["resources"]}
    assert resources["books"]["shortNames"] == ["bk"]
    assert resources["books"]["subresources"][0]["subresource"] == "status"
    until(
        lambda: list(must(client("GET", "/openapi/v3"), 200)["paths"]),
        lambda paths: "apis/library.example.com/v1" in paths,
    )
    assert (
        "/apis/library.example.com/v1/shelves"
        in must(client("GET", "/openapi/v3/apis/library.example.com/v1"), 200)["paths"]
    )
    until(lambda: b"/apis/library.example.com/v1/shelves" in client("GET", "/openapi/v2").body)


def test_it_receives_the_user_and_requests_authorization(library: Library, kubectl: Kubectl) -> None:
    with Client(library.front, "bob-token") as bob:
        rejected = bob("GET", BOOKS)
        assert rejected.status == 403
        assert 'User "bob" cannot list resource "books" in API group "library.example.com"' in rejected.json["message"]
        kubectl("create", "rolebinding", "readers", "--clusterrole=library:view", "--group=readers")
        until(lambda: bob("GET", BOOKS).status, lambda status: status == 200)  # the denial is cached for a while
        assert bob("POST", BOOKS, book("mine").encode()).status == 403


def test_identity_headers_count_only_from_the_front_proxy(library: Library) -> None:
    admin = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    assert library.ask(BOOKS, admin, as_front=True) == 200
    assert library.ask(BOOKS, admin, as_front=False) in (401, 403)
    assert library.ask(BOOKS, {"Authorization": "Bearer bob-token"}, as_front=False) in (200, 403)  # by a TokenReview
    assert library.ask(BOOKS, {"Authorization": "Bearer nobody"}, as_front=False) == 401


def test_its_failure_and_recovery_change_the_available_condition(
    front: KubeApiserver, admin: Kubectl, library: Library, client: Client
) -> None:
    """The APIService is set to a port without a listener and back; kube-apiserver checks availability after each
    change.
    """
    service = must(client("GET", SERVICE), 200)["spec"]["service"]
    look_again = {"Content-Type": "application/merge-patch+json"}

    def available(port: int) -> Any:
        must(client("PATCH", SERVICE, {"spec": {"service": {**service, "port": port}}}, look_again), 200)
        wanted = "True" if port == library.port else "False"
        found = until(
            lambda: {c["type"]: c for c in must(client("GET", SERVICE), 200)["status"]["conditions"]}["Available"],
            lambda condition: condition["status"] == wanted,
        )
        return found["reason"], found["message"]

    dead = free_port()
    reason, message = available(dead)
    assert reason == "FailedDiscoveryCheck"
    assert f"failing or missing response from https://localhost:{dead}/apis/library.example.com/v1" in message
    assert client("GET", BOOKS).status == 503
    assert available(library.port) == ("Passed", "all checks passed")
    until(lambda: client("GET", BOOKS).status, lambda status: status == 200)
