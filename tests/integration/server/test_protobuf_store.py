"""A store in which a stock kube-apiserver writes protobuf is used as it is, also by both servers at once."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from support import stock
from support.definitions import definition
from support.etcd import Etcd, etcd_36
from support.kube_apiserver import TOKEN, TOKENS, running_over
from support.server import running
from support.waiting import until
from tetrapod.cli.main import main
from tetrapod.generic.storage.encoding import PROTOBUF

NAMESPACED: Final = "/api/v1/namespaces/default"
WIDGETS: Final = "/apis/example.com/v1/namespaces/default/widgets"
POD_SPEC: Final[dict[str, Any]] = {
    "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "0.10", "memory": "64Mi"}}}]
}
TEMPLATE: Final = {"metadata": {"labels": {"app": "a"}}, "spec": POD_SPEC}
OBJECTS: Final[dict[str, dict[str, Any]]] = {
    f"{NAMESPACED}/configmaps": {"data": {"text": "täglich"}, "binaryData": {"x": "AAEC"}},
    f"{NAMESPACED}/secrets": {"stringData": {"password": "secret"}, "immutable": True},
    f"{NAMESPACED}/services": {
        "spec": {"type": "NodePort", "selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": "http"}]}
    },
    f"{NAMESPACED}/pods": {"spec": POD_SPEC},
    "/apis/apps/v1/namespaces/default/deployments": {
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE, "strategy": {"rollingUpdate": {}}}
    },
    "/apis/batch/v1/namespaces/default/cronjobs": {
        "spec": {
            "schedule": "@hourly",
            "jobTemplate": {"spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}},
        }
    },
    "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers": {
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}
    },
    "/apis/networking.k8s.io/v1/namespaces/default/ingresses": {
        "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}
    },
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {"spec": {"maxUnavailable": "50%"}},
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"value": 7},
    WIDGETS: {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1}},
}
LISTS: Final = (
    "/api/v1/namespaces",
    "/api/v1/services",
    "/api/v1/endpoints",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/networking.k8s.io/v1/ipaddresses",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    *OBJECTS,
)


class Client:
    """A client that authenticates with a bearer token."""

    def __init__(self, url: str, ca: Path) -> None:
        self._url = urlsplit(url)
        self._context = ssl.create_default_context(cafile=str(ca))

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        assert self._url.hostname is not None
        connection = http.client.HTTPSConnection(self._url.hostname, self._url.port, context=self._context, timeout=60)
        with contextlib.closing(connection):
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            raw = response.read()
            lines = [json.loads(line) for line in raw.splitlines()] if raw.startswith(b"{") else [raw]
            return response.status, lines[0] if len(lines) == 1 else lines

    def get(self, path: str) -> Any:
        status, body = self.call("GET", path)
        assert status == 200, body
        return body

    def create(self, path: str, body: Any) -> Any:
        status, created = self.call("POST", path, body)
        assert status == 201, created
        return created


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    etcd = Etcd(etcd_36(), tmp_path / "etcd")
    etcd.start()
    yield etcd
    etcd.stop()


def fill(client: Client) -> None:
    """Create an object of each kind in OBJECTS, once the server can."""
    client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("example.com", "Widget"))
    until(lambda: client.call("GET", WIDGETS)[0] == 200)
    until(lambda: client.call("POST", f"{NAMESPACED}/serviceaccounts", {"metadata": {"name": "default"}})[0] != 403)
    for path, body in OBJECTS.items():
        client.create(path, {**body, "metadata": {"name": "a", "labels": {"made": "stock"}}})


def by_name(listed: Any) -> dict[tuple[str, str], Any]:
    return {(item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in listed["items"]}


def check_lists(original: Client, ours: Client) -> int:
    """Check that objects which neither server has changed are equal, and return their number."""
    compared = 0
    for path in LISTS:
        expected, received = by_name(original.get(path)), by_name(ours.get(path))
        for name, item in expected.items():
            assert name in received
            if item["metadata"]["resourceVersion"] == received[name]["metadata"]["resourceVersion"]:
                assert received[name] == item
                compared += 1
    return compared


def test_both_servers_use_one_store(tmp_path: Path, etcd: Etcd) -> None:
    binary = stock.binaries()["kube-apiserver"]
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(TOKENS)
    flags = (f"--etcd-servers={etcd.url}", f"--token-auth-file={tokens}")
    one = f"{NAMESPACED}/configmaps/a"
    key = "/registry/configmaps/default/a"
    with running_over(etcd.url, binary, tmp_path / "stock") as stock_server:
        original = Client(stock_server.url, stock_server.ca)
        fill(original)
        assert etcd.value(key).startswith(PROTOBUF)
        with running(tmp_path / "ours", *flags) as server:
            ours = Client(server.url, server.ca)
            assert check_lists(original, ours) > 150
            for path in OBJECTS:
                assert ours.get(f"{path}/a") == original.get(f"{path}/a")
                assert by_name(ours.get(f"{path}?labelSelector=made%3Dstock&limit=1"))
            port = original.get(f"{NAMESPACED}/services/a")["spec"]["ports"][0]["nodePort"]
            spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}
            status, taken = ours.call("POST", f"{NAMESPACED}/services", {"metadata": {"name": "b"}, "spec": spec})
            assert (status, "already allocated" in taken["message"]) == (422, True)
            # An update that changes nothing stores the object as JSON, and the other server reads it.
            version = ours.get(one)["metadata"]["resourceVersion"]
            assert ours.call("PUT", one, ours.get(one))[0] == 200
            assert etcd.value(key).startswith(b"{")
            written = original.get(one)
            assert written["metadata"]["resourceVersion"] != version
            # A write of the other server is an event here, with the object before it for deletions.
            written["data"] = {"text": "changed"}
            assert original.call("PUT", one, written)[0] == 200
            assert etcd.value(key).startswith(PROTOBUF)
            assert original.call("DELETE", one)[0] == 200
            since = written["metadata"]["resourceVersion"]
            watch = f"{NAMESPACED}/configmaps?watch=1&timeoutSeconds=2&resourceVersion={since}&labelSelector=made"
            until(lambda: ours.call("GET", one)[0] == 404)
            events = ours.get(watch)
            assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
            assert all(event["object"]["data"] == {"text": "changed"} for event in events)


def test_the_store_of_a_stopped_server_is_migrated(tmp_path: Path, etcd: Etcd) -> None:
    with running_over(etcd.url, stock.binaries()["kube-apiserver"], tmp_path / "stock") as stock_server:
        original = Client(stock_server.url, stock_server.ca)
        fill(original)
        expected = {path: original.get(f"{path}/a") for path in OBJECTS}
    moved = CliRunner().invoke(main, ["migrate", "--from", etcd.url, "--to", str(tmp_path / "ours")])
    assert moved.exit_code == 0, moved.output
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(TOKENS)
    with running(tmp_path / "ours", f"--token-auth-file={tokens}") as server:
        ours = Client(server.url, server.ca)
        for path, obj in expected.items():
            received = ours.get(f"{path}/a")
            received["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
            assert received == obj
