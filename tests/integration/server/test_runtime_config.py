"""--runtime-config, tested by the effects on clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.failing_starts import start_error
from support.https_client import HttpsClient
from support.server import running
from support.services import NAMES, running_services

pytestmark = pytest.mark.long

OFF = ",".join(
    (
        "autoscaling/v1=false",
        "apps/v1/daemonsets=false",
        "batch/v1=false",
        "certificates.k8s.io/v1=false",
        "node.k8s.io/v1=false",
        "policy/v1=false",
        "resource.k8s.io/v1=false",
        "storage.k8s.io/v1=false",
        "storagemigration.k8s.io/v1=false",
        "networking.k8s.io/v1/ingresses=false",
        "/v1/replicationcontrollers=false",
    )
)
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
ABSENT = (404, "404 page not found\n")
NOT_FOUND = "the server could not find the requested resource"


def test_disabled_apis_are_neither_served_nor_described(tmp_path: Path) -> None:
    with running(tmp_path, f"--runtime-config={OFF}") as server:
        client = HttpsClient(server.kubeconfig)
        assert client.call("GET", "/apis/autoscaling/v2/horizontalpodautoscalers").status == 200
        # an absent version of a served group, and a resource of a served version
        for path in (
            "/apis/autoscaling/v1/horizontalpodautoscalers",
            "/apis/apps/v1/daemonsets",
            "/apis/networking.k8s.io/v1/ingresses",
            "/api/v1/replicationcontrollers",
        ):
            reply = client.call("GET", path)
            assert (reply.status, reply.message) == (404, NOT_FOUND), path
        # an absent group
        for path in ("/apis/batch/v1/jobs", "/apis/batch/v1", "/apis/batch", "/apis/policy/v1/poddisruptionbudgets"):
            assert client.call("GET", path)[:2] == ABSENT, path
        groups = {group["name"]: group for group in client.call("GET", "/apis").body["groups"]}
        assert not {"batch", "policy", "node.k8s.io", "resource.k8s.io", "storage.k8s.io"} & groups.keys()
        assert [version["version"] for version in groups["autoscaling"]["versions"]] == ["v2"]
        listed = {resource["name"] for resource in client.call("GET", "/apis/apps/v1").body["resources"]}
        assert "deployments/scale" in listed
        assert not {name for name in listed if name.startswith("daemonsets")}
        documents = client.call("GET", "/openapi/v3").body["paths"]
        assert "apis/autoscaling/v2" in documents
        assert not {"apis/autoscaling/v1", "apis/batch", "apis/batch/v1"} & documents.keys()
        swagger = client.call("GET", "/openapi/v2").body
        assert not [path for path in swagger["paths"] if "daemonset" in path or path.startswith("/apis/batch")]
        names = {item["metadata"]["name"] for item in client.call("GET", APISERVICES).body["items"]}
        assert "v2.autoscaling" in names
        assert not {"v1.autoscaling", "v1.batch"} & names
        assert client.call("DELETE", "/api/v1/namespaces/default/pods").status == 200
        namespace = {"metadata": {"name": "brief"}}
        assert client.call("POST", "/api/v1/namespaces", namespace).status == 201
        assert client.call("DELETE", "/api/v1/namespaces/brief").status == 200
        client.until(lambda reply: reply.status == 404, "GET", "/api/v1/namespaces/brief")
        assert client.call("GET", "/readyz").status == 200
        errors = [line for line in server.log.read_text().splitlines() if NOT_FOUND in line]
        assert not errors


def test_a_second_start_removes_the_apiservices_of_disabled_versions(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        assert HttpsClient(server.kubeconfig).call("GET", f"{APISERVICES}/v1.batch").status == 200
    with running(tmp_path, "--runtime-config=batch/v1=false") as server:
        client = HttpsClient(server.kubeconfig)
        client.until(lambda reply: reply.status == 404, "GET", f"{APISERVICES}/v1.batch")
        assert client.call("GET", "/apis/batch/v1/jobs")[:2] == ABSENT


def test_an_unknown_version_prevents_the_start(tmp_path: Path) -> None:
    assert "unknown api groups foo/v1" in start_error(tmp_path, "--runtime-config=foo/v1=true")


def test_four_services_serve_the_same_apis(tmp_path: Path) -> None:
    flags = (f"--runtime-config={OFF}", "--feature-gates=StorageVersionHash=false")
    with running_services(tmp_path, **dict.fromkeys(NAMES, flags)) as services:
        client = HttpsClient(services.kubeconfig)
        assert client.call("GET", "/apis/autoscaling/v2/horizontalpodautoscalers").status == 200
        for path in ("/apis/autoscaling/v1/horizontalpodautoscalers", "/apis/apps/v1/daemonsets"):
            reply = client.call("GET", path)
            assert (reply.status, reply.message) == (404, NOT_FOUND), path
        assert client.call("GET", "/apis/batch/v1/jobs")[:2] == ABSENT
        for path in ("/api/v1", "/apis/apps/v1", "/apis/apiextensions.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1"):
            resources = client.call("GET", path).body["resources"]
            assert resources and not any("storageVersionHash" in resource for resource in resources), path
        groups = {group["name"]: group for group in client.call("GET", "/apis").body["groups"]}
        assert not {"batch", "policy", "node.k8s.io", "resource.k8s.io", "storage.k8s.io"} & groups.keys()
        assert [version["version"] for version in groups["autoscaling"]["versions"]] == ["v2"]
        documents = client.call("GET", "/openapi/v3").body["paths"]
        assert not {"apis/autoscaling/v1", "apis/batch", "apis/batch/v1"} & documents.keys()
        names = {item["metadata"]["name"] for item in client.call("GET", APISERVICES).body["items"]}
        assert "v2.autoscaling" in names
        assert not {"v1.autoscaling", "v1.batch"} & names
