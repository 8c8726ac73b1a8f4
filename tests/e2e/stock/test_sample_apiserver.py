"""Tests of upstream's sample-apiserver behind Tetrapod's aggregator.

It is discovered, trusts the identity headers, and requests authorization from Tetrapod.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.stock.conftest import Cluster, Space, condition, must
from support.endpoints import endpoint_slice, own_address
from support.etcd import running_etcd
from support.server import command, environment
from support.stock import sample_apiserver
from support.waiting import until
from support.wire import Client

pytestmark = [pytest.mark.stock, pytest.mark.timeout(300)]

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = "v1alpha1.wardle.example.com"
ROOT = "/apis/wardle.example.com/v1alpha1"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.fixture(scope="module")
def flunders(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its own address."""
    directory: Path = tmp_path_factory.mktemp("sample")
    address = own_address()
    with (
        running_etcd(directory / "etcd") as etcd,
        cluster.client() as client,
        sample_apiserver(directory, cluster.target.kubeconfig, etcd.url) as (_, port),
    ):
        register(client, address, port)
        yield f"https://127.0.0.1:{port}"
        client("DELETE", f"{SERVICES}/{NAME}")


def register(client: Client, address: str, port: int) -> None:
    service = {"metadata": {"name": "sample"}, "spec": {"ports": [{"port": 443, "targetPort": port}]}}
    must(client("POST", "/api/v1/namespaces/default/services", service), 201)
    endpoints = endpoint_slice("sample", port, address)
    must(client("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", endpoints), 201)
    spec = {
        "group": "wardle.example.com",
        "version": "v1alpha1",
        "service": {"namespace": "default", "name": "sample"},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
    }
    must(client("POST", SERVICES, {"metadata": {"name": NAME}, "spec": spec}), 201)
    until(lambda: must(client("GET", f"{SERVICES}/{NAME}"), 200), lambda obj: condition(obj, "Available") == "True")


def flunder(name: str) -> Any:
    return {
        "apiVersion": "wardle.example.com/v1alpha1",
        "kind": "Flunder",
        "metadata": {"name": name},
        "spec": {"reference": "x"},
    }


def test_its_objects_can_be_written_read_watched_and_applied(flunders: str, space: Space) -> None:
    path = f"{ROOT}/namespaces/{space.name}/flunders"
    made = must(space.client("POST", path, flunder("f")), 201)
    assert made["spec"]["referenceType"] == "Flunder"  # its own default
    table = space.client("GET", path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).json
    assert [row["cells"][0] for row in table["rows"]] == ["f"]
    applied = {**flunder("f"), "metadata": {"name": "f", "labels": {"a": "b"}}}
    headers = {"Content-Type": "application/apply-patch+yaml"}
    assert must(space.client("PATCH", f"{path}/f?fieldManager=m&force=true", applied, headers), 200)["metadata"][
        "labels"
    ] == {"a": "b"}
    watched = space.client(
        "GET", f"{path}?watch=1&timeoutSeconds=1&resourceVersion={made['metadata']['resourceVersion']}"
    )
    assert b'"MODIFIED"' in watched.body
    assert must(space.client("DELETE", f"{path}/f"), 200)["status"] == "Success"


def test_check_apiserver_reports_no_failure_of_the_sample_apiserver(flunders: str, cluster: Cluster) -> None:
    data_dir = cluster.target.kubeconfig.parent
    if not (data_dir / "pki").is_dir():
        pytest.skip("not applicable: the front proxy of this target is not ours")
    argv = command("check-apiserver", flunders, "wardle.example.com/v1alpha1", f"--data-dir={data_dir}", "-o", "json")
    ended = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert [f for f in json.loads(ended.stdout) if f["outcome"] == "fail"] == []


def test_discovery_and_openapi_include_it(flunders: str, client: Client) -> None:
    groups = must(client("GET", "/apis"), 200)["groups"]
    assert "wardle.example.com" in [group["name"] for group in groups]
    assert {r["name"] for r in must(client("GET", ROOT), 200)["resources"]} >= {"flunders", "fischers"}
    until(lambda: list(must(client("GET", "/openapi/v3"), 200)["paths"]), lambda paths: ROOT[1:] in paths)
    assert f"{ROOT}/fischers" in must(client("GET", f"/openapi/v3{ROOT}"), 200)["paths"]


def test_it_receives_the_user_and_requests_authorization(flunders: str, cluster: Cluster, space: Space) -> None:
    path = f"{ROOT}/namespaces/{space.name}/flunders"
    with Client(cluster.target, "bob-token") as bob:
        rejected = bob("GET", path)
        assert rejected.status == 403
        assert rejected.json["message"].startswith(
            'flunders.wardle.example.com is forbidden: User "bob" cannot list resource "flunders"'
        )
        rules = [{"apiGroups": ["wardle.example.com"], "resources": ["flunders"], "verbs": ["list"]}]
        must(space.client("POST", ROLES, {"metadata": {"name": space.name}, "rules": rules}), 201)
        subjects = [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}]
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": space.name}
        must(
            space.client("POST", BINDINGS, {"metadata": {"name": space.name}, "subjects": subjects, "roleRef": role}),
            201,
        )
        until(lambda: bob("GET", path).status, lambda status: status == 200)  # the denial is cached for a while
        assert bob("POST", path, flunder("g")).status == 403


def test_deleting_a_namespace_deletes_its_objects(flunders: str, space: Space) -> None:
    path = f"{ROOT}/namespaces/{space.name}/flunders"
    must(space.client("POST", path, flunder("last")), 201)
    must(space.client("DELETE", f"/api/v1/namespaces/{space.name}"), 200)
    until(lambda: space.client("GET", f"/api/v1/namespaces/{space.name}").status, lambda status: status == 404)
    assert must(space.client("GET", path), 200)["items"] == []
