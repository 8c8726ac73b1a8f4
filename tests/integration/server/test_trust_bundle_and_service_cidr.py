"""The controllers that publish the CA and protect ServiceCIDRs, in a new cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from support.https_client import HttpsClient
from support.server import Server, running

BUNDLES = "/apis/certificates.k8s.io/v1/clustertrustbundles"
CONTROLLERS = "*,service-cidr-controller,kube-apiserver-serving-clustertrustbundle-publisher-controller"
SIGNER = "kubernetes.io/kube-apiserver-serving"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("cluster"), f"--controllers={CONTROLLERS}") as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> HttpsClient:
    return HttpsClient(server.kubeconfig)


def test_the_ca_is_published_as_a_trust_bundle_and_restored(server: Server, client: HttpsClient) -> None:
    ca = server.ca.read_text()
    name = f"kubernetes.io:kube-apiserver-serving:{hashlib.sha256(ca.encode()).hexdigest()[:24]}"
    path = f"{BUNDLES}/{name}"
    created = client.until(lambda r: r.status == 200, "GET", path)
    assert created.body["spec"] == {"signerName": SIGNER, "trustBundle": ca}
    uid = created.body["metadata"]["uid"]
    assert client.call("DELETE", path).status == 200
    again = client.until(lambda r: r.status == 200 and r.body["metadata"]["uid"] != uid, "GET", path)
    assert again.body["spec"] == created.body["spec"]


def test_trust_bundles_of_former_cas_are_deleted(server: Server, client: HttpsClient) -> None:
    former = f"{BUNDLES}/kubernetes.io:kube-apiserver-serving:former"
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "ClusterTrustBundle",
        "metadata": {"name": former.rsplit("/", 1)[1]},
        "spec": {"signerName": SIGNER, "trustBundle": server.ca.read_text()},
    }
    assert client.call("POST", BUNDLES, body).status == 201
    assert client.until(lambda r: r.status == 404, "GET", former).status == 404


def test_the_service_cidr_has_its_finalizer(client: HttpsClient) -> None:
    cidr = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"
    finalizers = ["networking.k8s.io/service-cidr-finalizer"]
    reply = client.until(lambda r: r.body["metadata"].get("finalizers") == finalizers, "GET", cidr)
    assert reply.body["metadata"].get("finalizers") == finalizers
