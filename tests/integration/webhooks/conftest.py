"""One server with webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.https_client import HttpsClient, Reply
from support.server import running
from support.webhook import WebhookServer, webhook_server

NS = "hooked"
CONFIG_MAPS = f"/api/v1/namespaces/{NS}/configmaps"
GROUP = "/apis/admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


def config_map(name: str = "a", **metadata: Any) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"k": "v"}}


class Hooked:
    """A server, and a webhook server whose webhooks are registered for the duration of a block."""

    def __init__(self, client: HttpsClient, hook: WebhookServer) -> None:
        self.client, self.hook = client, hook

    def declared(self, name: str, path: str, **more: Any) -> Any:
        return {
            "name": f"{name}.example.com",
            "clientConfig": self.hook.config(path),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 2,
            "rules": [RULE],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NS}},
            **more,
        }

    @contextmanager
    def configured(self, kind: str, *hooks: Any, name: str = "hooks") -> Iterator[None]:
        """Register webhooks. `kind` is "Mutating" or "Validating"."""
        path = f"{GROUP}/{kind.lower()}webhookconfigurations"
        obj = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": list(hooks),
        }
        made = self.client.call("POST", path, obj)
        assert made.status == 201, made
        try:
            yield
        finally:
            self.client.call("DELETE", f"{path}/{name}")

    def create(self, name: str = "a", query: str = "?dryRun=All", **metadata: Any) -> Reply:
        return self.client.call("POST", CONFIG_MAPS + query, config_map(name, **metadata))

    def reviews(self) -> list[Any]:
        """Return the requests that the webhooks have received since the last call."""
        seen, self.hook.seen = self.hook.seen, []
        return [body["request"] for _, _, body in seen if body]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    directory = tmp_path_factory.mktemp("hooked")
    with running(directory, "--enable-aggregator-routing") as server:
        found = HttpsClient(server.kubeconfig)
        found.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
        yield found


@pytest.fixture
def hooked(client: HttpsClient) -> Iterator[Hooked]:
    with webhook_server() as hook:
        yield Hooked(client, hook)
