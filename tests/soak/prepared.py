"""Objects that the traffic needs in the store: rights, a service account, a bootstrap token, and objects that cause
each error.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tempfile
from contextlib import AsyncExitStack
from typing import Any, Final

from chaos.http import Address, Answer, Connection
from soak.worlds import BOOTSTRAP_TOKEN, World
from tetrapod.generic.certificates.authority import Authority

NAMESPACE: Final = "soak"
CONFIG_MAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_CONFLICT: Final = 409


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _object(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _binding(name: str, *subjects: dict[str, str]) -> dict[str, Any]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    return _object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", name, roleRef=role, subjects=[*subjects])


def _bootstrap_secret() -> dict[str, Any]:
    identifier, _, secret = BOOTSTRAP_TOKEN.partition(".")
    data = {"token-id": identifier, "token-secret": secret, "usage-bootstrap-authentication": "true"}
    metadata = {"name": f"bootstrap-token-{identifier}", "namespace": "kube-system"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": metadata,
        "stringData": data,
    }


def _pod(name: str, node: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app": "guarded"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    }


def _objects() -> list[tuple[str, dict[str, Any]]]:
    """Paths and objects, in the order of their creation."""
    users = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers"}
    account = {"kind": "ServiceAccount", "name": "soak", "namespace": NAMESPACE}
    service = {"namespace": NAMESPACE, "name": "nowhere"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    hook = {
        "name": "away.soak.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/away"},
        "rules": [rule],
        "objectSelector": {"matchLabels": {"webhook": "away"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    aggregated = {
        "group": "away.soak.example.com",
        "version": "v1",
        "service": service,
        "groupPriorityMinimum": 1,
        "versionPriority": 1,
    }
    aggregated["insecureSkipTLSVerify"] = True
    accounts, budgets = (
        f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
        f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
    )
    hooks = f"{_ADMISSION}/validatingwebhookconfigurations"
    return [
        ("/api/v1/namespaces", _object("v1", "Namespace", NAMESPACE)),
        (accounts, _object("v1", "ServiceAccount", "soak")),
        (accounts, _object("v1", "ServiceAccount", "default")),
        ("/api/v1/namespaces/kube-system/secrets", _bootstrap_secret()),
        (f"{_RBAC}/clusterrolebindings", _binding("soak", users, account)),
        (CONFIG_MAPS, config_map("present", a="b")),
        (hooks, _object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "soak", webhooks=[hook])),
        (PODS, _pod("guarded", "soak-node")),
        (budgets, _object("policy/v1", "PodDisruptionBudget", "guard", spec=budget)),
        (_SERVICES, _object("apiregistration.k8s.io/v1", "APIService", "v1.away.soak.example.com", spec=aggregated)),
    ]


async def prepare(world: World, stack: AsyncExitStack) -> None:
    """Create all objects, and a kubelet that accepts upgrades until `stack` is closed."""
    connection = Connection(world.admin, timeout=60)
    port = await _kubelet(stack)
    try:
        for path, obj in _objects():
            await _create(connection, path, obj)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "soak-node"}}
        await _create(connection, "/api/v1/nodes", node)
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        await _done(
            connection, "PATCH", "/api/v1/nodes/soak-node/status", {"status": status}, "application/merge-patch+json"
        )
        await _done(
            connection,
            "PATCH",
            f"{PODS}/guarded/status",
            {"status": {"phase": "Running"}},
            "application/merge-patch+json",
        )
    finally:
        connection.close()


async def _create(connection: Connection, path: str, obj: dict[str, Any]) -> None:
    answer = await connection.ask("POST", path, obj)
    if answer.status not in (201, _CONFLICT):
        raise RuntimeError(f"POST {path}: {answer.status} {answer.body[:500]!r}")


async def _done(connection: Connection, method: str, path: str, body: Any, content_type: str) -> Answer:
    answer = await connection.ask(method, path, body, content_type)
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {answer.body[:500]!r}")
    return answer


async def service_account(world: World) -> Address:
    """Return the credential of a new token."""
    connection = Connection(world.admin, timeout=60)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    try:
        answer = await _done(
            connection,
            "POST",
            f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/soak/token",
            request,
            "application/json",
        )
    finally:
        connection.close()
    return Address(world.admin.url, world.cases["anonymous"].tls, f"Bearer {answer.json['status']['token']}")


async def _kubelet(stack: AsyncExitStack) -> int:
    """Serve the upgrades of exec: after the head, what comes is sent back. Return the port."""
    certificate, key = Authority.create("soak-kubelet").issue_server("kubelet", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(certificate + key)
        pair.flush()
        context.load_cert_chain(pair.name)
    open_streams: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_streams.add(writer)
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
            while data := await reader.read(65536):
                writer.write(data)
        open_streams.discard(writer)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)

    def close() -> None:
        server.close()
        for writer in open_streams:
            writer.transport.abort()

    stack.callback(close)
    return int(server.sockets[0].getsockname()[1])
