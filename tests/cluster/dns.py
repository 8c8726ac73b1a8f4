"""CoreDNS as the cluster's DNS server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from cluster.images import COREDNS
from cluster.settings import DNS
from support.https_client import HttpsClient

_MANIFEST: Final = Path(__file__).with_name("coredns.yaml")
_NAMESPACE: Final = "/apis/apps/v1/namespaces/kube-system"
_PATHS: Final = {
    "ServiceAccount": "/api/v1/namespaces/kube-system/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/kube-system/configmaps",
    "Service": "/api/v1/namespaces/kube-system/services",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Deployment": f"{_NAMESPACE}/deployments",
}


def objects() -> list[Any]:
    """Return the objects of CoreDNS."""
    text = _MANIFEST.read_text().replace("{address}", DNS).replace("{image}", COREDNS)
    return list(yaml.safe_load_all(text))


def deploy(client: HttpsClient) -> None:
    """Create the objects."""
    for obj in objects():
        reply = client.call("POST", _PATHS[obj["kind"]], obj)
        assert reply.status == 201, reply


def wait_until_available(client: HttpsClient) -> None:
    """Wait until every replica answers."""

    def available(deployment: Any) -> bool:
        return bool(deployment["status"].get("availableReplicas") == deployment["spec"]["replicas"])

    client.until(lambda reply: available(reply.body), "GET", f"{_NAMESPACE}/deployments/coredns", timeout=90)
