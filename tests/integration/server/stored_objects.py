"""Objects of many kinds, and a client, for tests of the form in which objects are stored."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from support.definitions import definition
from support.kube_apiserver import TOKEN
from support.waiting import until

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
    "/apis/apps/v1/namespaces/default/statefulsets": {
        "spec": {
            "serviceName": "a",
            "selector": {"matchLabels": {"app": "a"}},
            "template": TEMPLATE,
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }
            ],
        }
    },
    "/apis/apps/v1/namespaces/default/controllerrevisions": {"revision": 1, "data": {"b": "<1>", "a": [1, 2]}},
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


def fill(client: Client) -> None:
    """Create an object of each kind in OBJECTS, once the server can."""
    client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("example.com", "Widget"))
    until(lambda: client.call("GET", WIDGETS)[0] == 200)
    until(lambda: client.call("POST", f"{NAMESPACED}/serviceaccounts", {"metadata": {"name": "default"}})[0] != 403)
    for path, body in OBJECTS.items():
        client.create(path, {**body, "metadata": {"name": "a", "labels": {"made": "stock"}}})


def by_name(listed: Any) -> dict[tuple[str, str], Any]:
    return {(item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in listed["items"]}
