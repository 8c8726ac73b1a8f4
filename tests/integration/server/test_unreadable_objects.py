"""Objects in the store that no API server has written: they can be deleted, and no controller stops because of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from support.https_client import HttpsClient
from support.server import Server, running
from tetrapod.generic.storage.sqlite import SqliteBackend

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
PREFIX: Final = "/registry/"
_NAMED: Final = {"name": "odd", "namespace": "default"}


def _object(kind: str, metadata: Any, **more: Any) -> bytes:
    return orjson.dumps({"apiVersion": "v1", "kind": kind, "metadata": metadata, **more})


ODD: Final[dict[str, bytes]] = {
    "configmaps/default/without-uid": _object("ConfigMap", {"name": "without-uid", "namespace": "default"}),
    "configmaps/default/without-name": _object("ConfigMap", {"namespace": "default", "uid": "1"}),
    "configmaps/default/without-metadata": orjson.dumps({"apiVersion": "v1", "kind": "ConfigMap"}),
    "configmaps/default/list-as-metadata": _object("ConfigMap", []),
    "configmaps/default/number-as-labels": _object(
        "ConfigMap", {"name": "number-as-labels", "namespace": "default", "uid": "2", "labels": 5}
    ),
    "configmaps/default/number-as-uid": _object(
        "ConfigMap", {"name": "number-as-uid", "namespace": "default", "uid": 6}
    ),
    "configmaps/default/empty-owner": _object(
        "ConfigMap", {"name": "empty-owner", "namespace": "default", "uid": "3", "ownerReferences": [{}]}
    ),
    "configmaps/default/text-as-owners": _object(
        "ConfigMap", {"name": "text-as-owners", "namespace": "default", "uid": "4", "ownerReferences": "x"}
    ),
    "configmaps/default/number-as-finalizers": _object(
        "ConfigMap", {"name": "number-as-finalizers", "namespace": "default", "uid": "5", "finalizers": 5}
    ),
    "pods/default/odd": _object("Pod", _NAMED),
    "pods/default/empty-lists": _object("Pod", {"name": "empty-lists"}, spec={"containers": [{}], "volumes": [{}]}),
    "secrets/default/odd": _object("Secret", _NAMED, type="kubernetes.io/service-account-token"),
    "serviceaccounts/default/odd": _object("ServiceAccount", _NAMED, secrets=[{}]),
    "resourcequotas/default/odd": _object("ResourceQuota", _NAMED),
    "resourcequotas/default/no-limits": _object("ResourceQuota", {"name": "no-limits"}, spec={"hard": {}}, status={}),
    "limitranges/default/odd": _object("LimitRange", _NAMED, spec={"limits": [{}]}),
    "services/specs/default/odd": _object("Service", _NAMED),
    "services/specs/default/empty-port": _object("Service", {"name": "empty-port"}, spec={"ports": [{}]}),
    "minions/odd": _object("Node", {"name": "odd"}),
    "namespaces/odd": _object("Namespace", {"name": "odd"}),
    "clusterroles/odd": _object("ClusterRole", {"name": "odd"}),
    "clusterroles/empty-rule": _object("ClusterRole", {"name": "empty-rule"}, rules=[{}]),
    "clusterrolebindings/odd": _object("ClusterRoleBinding", {"name": "odd"}, subjects=[{}]),
    "rolebindings/default/odd": _object("RoleBinding", _NAMED, roleRef={}),
    "flowschemas/odd": _object("FlowSchema", {"name": "odd"}),
    "prioritylevelconfigurations/odd": _object("PriorityLevelConfiguration", {"name": "odd"}),
    "validatingwebhookconfigurations/odd": _object("ValidatingWebhookConfiguration", {"name": "odd"}),
    "mutatingwebhookconfigurations/odd": _object("MutatingWebhookConfiguration", {"name": "odd"}, webhooks=[{}]),
    "validatingadmissionpolicies/odd": _object("ValidatingAdmissionPolicy", {"name": "odd"}),
    "validatingadmissionpolicybindings/odd": _object("ValidatingAdmissionPolicyBinding", {"name": "odd"}),
    "apiextensions.k8s.io/customresourcedefinitions/odd.example.com": _object(
        "CustomResourceDefinition", {"name": "odd.example.com"}
    ),
    "apiregistration.k8s.io/apiservices/v1.odd.example.com": _object("APIService", {"name": "v1.odd.example.com"}),
    "priorityclasses/odd": _object("PriorityClass", {"name": "odd"}),
    "ingressclasses/odd": _object("IngressClass", {"name": "odd"}),
    "storageclasses/odd": _object("StorageClass", {"name": "odd"}),
    "endpointslices/default/odd": _object("EndpointSlice", _NAMED, endpoints=[{}]),
    "ipaddresses/odd": _object("IPAddress", {"name": "odd"}),
    "servicecidrs/odd": _object("ServiceCIDR", {"name": "odd"}),
    "servicecidrs/no-network": _object("ServiceCIDR", {"name": "no-network"}, spec={"cidrs": ["x", 5]}),
    "leases/kube-system/odd": _object("Lease", {"name": "odd", "namespace": "kube-system"}),
    "events/default/odd": _object("Event", _NAMED),
    "certificatesigningrequests/odd": _object("CertificateSigningRequest", {"name": "odd"}),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("odd")
    asyncio.run(_fill(directory / "tetrapod.db"))
    with running(directory) as server:
        yield server


async def _fill(path: Path) -> None:
    backend = SqliteBackend(path)
    for key, value in ODD.items():
        await backend.put_if(f"{PREFIX}{key}", value, 0)
    await backend.close()


@pytest.fixture(scope="module")
def client(server: Server) -> HttpsClient:
    return HttpsClient(server.kubeconfig)


def test_the_garbage_collector_goes_on(client: HttpsClient) -> None:
    owner = client.call("POST", CONFIG_MAPS, {"metadata": {"name": "owner"}}).body
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    dependent = {"metadata": {"name": "dependent", "ownerReferences": [reference]}}
    assert client.call("POST", CONFIG_MAPS, dependent).status == 201
    assert client.call("DELETE", f"{CONFIG_MAPS}/owner").status == 200
    client.until(lambda reply: reply.status == 404, "GET", f"{CONFIG_MAPS}/dependent")


def test_accounts_of_a_new_namespace_are_created_and_its_contents_deleted(client: HttpsClient) -> None:
    assert client.call("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}}).status == 201
    client.until(lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/new/configmaps/kube-root-ca.crt")
    assert client.call("DELETE", "/api/v1/namespaces/new").status == 200
    client.until(lambda reply: reply.status == 404, "GET", "/api/v1/namespaces/new")


def test_skipped_objects_are_counted(client: HttpsClient) -> None:
    metrics = client.call("GET", "/metrics").body
    lines = [line for line in metrics.splitlines() if line.startswith("informer_skipped_objects_total{")]
    assert any('resource="configmaps"' in line for line in lines)


def test_no_background_task_ends(client: HttpsClient, server: Server) -> None:
    assert client.call("GET", "/readyz").status == 200
    log = server.log.read_text()
    assert "never retrieved" not in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    "path",
    [
        f"{CONFIG_MAPS}/without-uid",
        f"{CONFIG_MAPS}/without-name",
        f"{CONFIG_MAPS}/number-as-labels",
        f"{CONFIG_MAPS}/number-as-uid",
        f"{CONFIG_MAPS}/empty-owner",
        f"{CONFIG_MAPS}/text-as-owners",
        "/api/v1/namespaces/default/pods/odd",
        "/api/v1/namespaces/default/secrets/odd",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/odd",
        "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/odd",
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.odd.example.com",
        "/api/v1/namespaces/default/services/odd",
        "/api/v1/nodes/odd",
    ],
)
def test_an_odd_object_can_be_deleted(client: HttpsClient, path: str) -> None:
    assert client.call("DELETE", path).status == 200
    client.until(lambda reply: reply.status == 404, "GET", path)


def test_services_get_addresses(client: HttpsClient) -> None:
    body = {"metadata": {"name": "new"}, "spec": {"ports": [{"port": 80}]}}
    client.until(lambda reply: reply.status == 200, "GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes")
    reply = client.call("POST", "/api/v1/namespaces/default/services", body)
    assert reply.status == 201, reply.body
    assert reply.body["spec"]["clusterIP"].startswith("10.0.0.")
    assert client.call("GET", "/metrics").status == 200
