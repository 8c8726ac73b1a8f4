"""--egress-selector-config-file: connections by way of an HTTP CONNECT proxy, and configurations that are rejected."""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.connect_proxy import ConnectProxy, connect_proxy
from support.etcd import running_etcd
from support.failing_starts import start_error
from support.https_client import MERGE, HttpsClient
from support.server import Server, running
from support.service_accounts import wait_for_service_account
from support.waiting import until
from support.webhook import WebhookServer, allowed, webhook_server
from tetrapod.auth.oidc.authenticator import JwtAuthenticator
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.egress.http_connect import tcp_dialer
from tetrapod.generic.egress.selector import read_egress_selector
from tetrapod.generic.proxy.pool import BackendPool

VERSION = "apiserver.k8s.io/v1beta1"


def write_configuration(path: Path, selections: dict[str, Any], version: str = VERSION) -> Path:
    listed = [{"name": name, "connection": connection} for name, connection in selections.items()]
    path.write_text(
        json.dumps({"apiVersion": version, "kind": "EgressSelectorConfiguration", "egressSelections": listed})
    )
    return path


@dataclass
class Cluster:
    server: Server
    client: HttpsClient
    webhook: WebhookServer
    cluster: ConnectProxy
    control_plane: ConnectProxy
    etcd: ConnectProxy


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a server whose three types of traffic have a proxy each: at a Unix socket, with mTLS, and without TLS.

    The names of the servers are known to the proxies only.
    """
    directory = tmp_path_factory.mktemp("egress")
    authority = Authority.create("proxy-ca")
    for name, pair in (
        ("proxy", authority.issue_server("proxy", ["proxy.example"])),
        ("client", authority.issue_client("apiserver")),
    ):
        (directory / f"{name}.crt").write_bytes(pair[0])
        (directory / f"{name}.key").write_bytes(pair[1])
    (directory / "ca.crt").write_bytes(authority.certificate_pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(directory / "ca.crt"))
    context.load_cert_chain(directory / "proxy.crt", directory / "proxy.key")
    context.verify_mode = ssl.CERT_REQUIRED
    with (
        running_etcd(tmp_path_factory.mktemp("etcd")) as etcd,
        tempfile.TemporaryDirectory() as sockets,
        webhook_server() as webhook,
        connect_proxy({}, unix=Path(sockets) / "s") as (for_cluster, _),
        connect_proxy({}, tls=context) as (for_control_plane, tls_port),
        connect_proxy({}) as (for_etcd, plain_port),
    ):
        hook_port = int(webhook.url.rpartition(":")[2])
        for_cluster.names["kubelet.example:10250"] = hook_port
        for_control_plane.names[f"127.0.0.1:{hook_port}"] = hook_port
        for_etcd.names["etcd.example:2379"] = int(etcd.url.rpartition(":")[2])
        tls = {"caBundle": str(directory / "ca.crt"), "clientCert": str(directory / "client.crt")}
        tls |= {"clientKey": str(directory / "client.key"), "tlsServerName": "proxy.example"}
        tcp = {"url": f"https://127.0.0.1:{tls_port}", "tlsConfig": tls}
        path = write_configuration(
            directory / "egress.json",
            {
                "cluster": _connection({"uds": {"udsName": f"{sockets}/s"}}),
                "controlplane": _connection({"tcp": tcp}),
                "Etcd": _connection({"tcp": {"url": f"http://127.0.0.1:{plain_port}"}}),
            },
        )
        flags = (f"--egress-selector-config-file={path}", "--etcd-servers=http://etcd.example:2379")
        with running(tmp_path_factory.mktemp("server"), *flags) as server:
            client = HttpsClient(server.kubeconfig)
            wait_for_service_account(client.call)
            yield Cluster(server, client, webhook, for_cluster, for_control_plane, for_etcd)


def _connection(transport: dict[str, Any]) -> dict[str, Any]:
    return {"proxyProtocol": "HTTPConnect", "transport": transport}


def test_etcd_is_reached_through_its_proxy(cluster: Cluster) -> None:
    assert set(cluster.etcd.targets) == {"etcd.example:2379"}


def test_kubelets_are_reached_through_the_proxy_of_the_cluster(cluster: Cluster) -> None:
    client = cluster.client
    cluster.webhook.on("/containerLogs/default/p/c", lambda _: {"from": "kubelet"})
    for node in ("kubelet", "unknown"):
        assert client.call("POST", "/api/v1/nodes", {"metadata": {"name": node}}).status == 201
        status = {"status": {"addresses": [{"type": "Hostname", "address": f"{node}.example"}]}}
        assert client.call("PATCH", f"/api/v1/nodes/{node}/status", status, MERGE).status == 200
    for pod, node in (("p", "kubelet"), ("q", "unknown")):
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        body = {"metadata": {"name": pod}, "spec": spec}
        assert client.call("POST", "/api/v1/namespaces/default/pods", body).status == 201
    client.call("GET", "/api/v1/namespaces/default/pods/p/log")
    assert cluster.webhook.seen[-1][0].startswith(("GET /containerLogs/default/p/c", "POST /containerLogs/default/p/c"))
    answer = client.call("GET", "/api/v1/namespaces/default/pods/q/log")
    assert answer.status == 500
    assert "while dialing unknown.example:10250, code 503: 503 Service Unavailable" in answer.message
    assert {"kubelet.example:10250", "unknown.example:10250"} <= set(cluster.cluster.targets)
    lines = cluster.client.call("GET", "/metrics").body.splitlines()
    prefix = "apiserver_egress_dialer_dial_"
    assert f'{prefix}failure_count{{protocol="http_connect",stage="proxy",transport="uds"}} 1' in lines
    for name, transport in (("start_total", "tcp"), ("duration_seconds_count", "uds")):
        assert any(
            line.startswith(f'{prefix}{name}{{protocol="http_connect",transport="{transport}"}} ') for line in lines
        )


def test_a_webhook_with_a_url_is_called_through_the_proxy_of_the_control_plane(cluster: Cluster) -> None:
    cluster.webhook.on("/validate", allowed)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    webhook = {
        "name": "hook.example.com",
        "clientConfig": cluster.webhook.config("/validate"),
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    }
    body = {"metadata": {"name": "hook"}, "webhooks": [webhook]}
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert cluster.client.call("POST", path, body).status == 201

    def called() -> bool:
        created = {"metadata": {"generateName": "c-"}}
        assert cluster.client.call("POST", "/api/v1/namespaces/default/configmaps", created).status == 201
        return bool(cluster.control_plane.targets)

    until(called)


SUPPORTED = 'supported values: "Direct", "HTTPConnect", "GRPC"'
REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"cluster": {"proxyProtocol": "SOCKS"}}, f'service.connection.protocol: Unsupported value: "SOCKS": {SUPPORTED}'),
    (
        {"cluster": {"proxyProtocol": "Direct", "transport": {}}},
        'service.connection.transport: Invalid value: "direct": config must be absent for direct connect',
    ),
    (
        {"cluster": {"proxyProtocol": "HTTPConnect"}},
        "service.connection.transport: Required value: transport must be set for HTTPConnect",
    ),
    ({"cluster": _connection({})}, "service.connection.tcp: Required value: One of TCP or UDS must be set"),
    (
        {"cluster": _connection({"tcp": {"url": "ftp://x"}})},
        'service.connection.url: Invalid value: "ftp://x": supported connection protocols are http:// and https://',
    ),
    (
        {"cluster": _connection({"tcp": {"url": "https://x:1"}})},
        "service.connection.tlsConfig: Required value: TLSConfig must be present when using HTTPS",
    ),
    (
        {"cluster": _connection({"tcp": {"url": "https://x:1", "tlsConfig": {"clientCert": "/nowhere"}}})},
        '[service.connection.tlsConfig.clientCert: Invalid value: "/nowhere": TLS client cert does not exist, '
        'service.connection.tlsConfig.clientKey: Invalid value: "nil": Using TLS requires requires clientKey]',
    ),
    (
        {"cluster": _connection({"uds": {}})},
        'service.connection.udsName: Invalid value: "nil": must be present for UDS connections',
    ),
    (
        {"cluster": {"proxyProtocol": "GRPC", "transport": {"tcp": {"url": "http://x"}}}},
        "service.connection.uds: Required value: UDS must be set with GRPC",
    ),
    (
        {"cluster": {"proxyProtocol": "Direct"}, "Cluster": {"proxyProtocol": "Direct"}},
        'service.connection[1]: Duplicate value: "cluster"',
    ),
    (
        {"master": {"proxyProtocol": "Direct"}},
        'service.connection: Unsupported value: "master": supported values: "cluster", "controlplane", "etcd"',
    ),
]


@pytest.mark.parametrize(("selections", "text"), REJECTED)
def test_an_invalid_configuration_is_rejected(tmp_path: Path, selections: dict[str, Any], text: str) -> None:
    path = write_configuration(tmp_path / "egress.json", selections)
    with pytest.raises(ValueError, match=r"^failed to validate egress selector configuration: ") as raised:
        read_egress_selector(str(path))
    assert str(raised.value).endswith(f"configuration: {text}")


def test_a_server_with_an_invalid_configuration_does_not_start(tmp_path: Path) -> None:
    path = write_configuration(tmp_path / "egress.json", {"cluster": _connection({"uds": {}})})
    assert start_error(tmp_path / "data", f"--egress-selector-config-file={path}").endswith(
        "failed to validate egress selector configuration: service.connection.udsName: "
        'Invalid value: "nil": must be present for UDS connections'
    )
    missing = start_error(tmp_path / "data", f"--egress-selector-config-file={tmp_path}/nowhere")
    assert missing.endswith(f"egress-selector-config-file {tmp_path}/nowhere does not exist")


async def test_an_issuer_with_an_egress_type_is_fetched_through_its_proxy() -> None:
    issuer = {"url": "https://issuer.example", "audiences": ["a"], "egressSelectorType": "cluster"}
    claims = {"username": {"claim": "sub", "prefix": ""}}
    direct, pools = BackendPool(), dict[str, BackendPool]()
    with pytest.raises(ValueError, match=r'^oidc: egress lookup required with egress selector type "cluster"$'):
        JwtAuthenticator({"issuer": issuer, "claimMappings": claims}, direct)
    with pytest.raises(ValueError, match=r'^oidc: egress lookup for "cluster" is not configured$'):
        JwtAuthenticator({"issuer": issuer, "claimMappings": claims}, direct, egress=pools)
    with webhook_server(("issuer.example",)) as server, connect_proxy({"issuer.example:443": server.port}) as made:
        proxy, port = made
        server.on("/.well-known/openid-configuration", lambda _: {"issuer": issuer["url"], "jwks_uri": "https://x"})
        pools["cluster"] = BackendPool(dialer=tcp_dialer(f"http://127.0.0.1:{port}", None))
        issuer["certificateAuthority"] = server.authority.certificate_pem.decode()
        jwt = JwtAuthenticator({"issuer": issuer, "claimMappings": claims}, direct, egress=pools)
        async with asyncio.timeout(30):
            await jwt.run()
        assert proxy.targets == ["issuer.example:443"]
        assert jwt.discovery_error() == ""
        await pools["cluster"].close()
        await asyncio.sleep(0)


def test_a_configuration_of_an_unknown_version_is_rejected(tmp_path: Path) -> None:
    path = write_configuration(tmp_path / "egress.json", {}, "apiserver.k8s.io/v1")
    with pytest.raises(ValueError, match="failed to read egress selector config: no kind"):
        read_egress_selector(str(path))
    path = write_configuration(path, {"cluster": {"proxyProtocol": "Direct"}}, "apiserver.k8s.io/v1alpha1")
    assert read_egress_selector(str(path)).dialers == {"cluster": None}
