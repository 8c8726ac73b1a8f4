"""The pods of the cluster itself: CoreDNS, and a provisioner of volumes, which are directories of the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from cluster.images import BUSYBOX, COREDNS, PROVISIONER
from cluster.settings import DNS
from support.https_client import HttpsClient

_MANIFESTS: Final = ("coredns.yaml", "storage.yaml")
_VARIABLES: Final = {"{address}": DNS, "{coredns}": COREDNS, "{provisioner}": PROVISIONER, "{busybox}": BUSYBOX}
_COREDNS: Final = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"


def objects() -> list[Any]:
    """Return the objects to create, in their order."""
    text = "---\n".join(Path(__file__).with_name(name).read_text() for name in _MANIFESTS)
    for variable, value in _VARIABLES.items():
        text = text.replace(variable, value)
    return list(yaml.safe_load_all(text))


def path(obj: Any) -> str:
    """Return the path of the collection of an object."""
    version, namespace = obj["apiVersion"], obj["metadata"].get("namespace")
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = {"StorageClass": "storageclasses"}.get(obj["kind"], f"{obj['kind'].lower()}s")
    return f"{prefix}/namespaces/{namespace}/{plural}" if namespace else f"{prefix}/{plural}"


def deploy(client: HttpsClient) -> None:
    """Create the objects."""
    for obj in objects():
        reply = client.call("POST", path(obj), obj)
        assert reply.status == 201, reply


def wait_for_dns(client: HttpsClient) -> None:
    """Wait until every replica of CoreDNS answers."""

    def available(deployment: Any) -> bool:
        return bool(deployment["status"].get("availableReplicas") == deployment["spec"]["replicas"])

    client.until(lambda reply: available(reply.body), "GET", _COREDNS, timeout=90)
