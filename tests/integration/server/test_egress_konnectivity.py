"""The egress selector over gRPC, with konnectivity's proxy server and agent."""

from __future__ import annotations

import asyncio
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.server.test_egress_selector import write_configuration
from support.etcd import Etcd, running_etcd
from support.https_client import MERGE, HttpsClient
from support.konnectivity import Konnectivity, konnectivity
from support.server import Server, freeze, running
from support.service_accounts import wait_for_service_account
from support.waiting import eventually, until
from support.webhook import WebhookServer, allowed, webhook_server
from tetrapod.generic.dialing import DialError
from tetrapod.generic.egress import grpc
from tetrapod.generic.egress.client_metrics import CONNECTIONS, DIAL_FAILURES
from tetrapod.generic.egress.grpc import grpc_dialer

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),  # the first run builds konnectivity, for minutes on a busy machine
]
MAPS = "/api/v1/namespaces/default/configmaps"
LARGE = 900_000


@pytest.fixture(scope="module")
def sockets() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory, sockets: Path) -> Iterator[Konnectivity]:
    with konnectivity(tmp_path_factory.mktemp("konnectivity"), sockets / "s") as running_proxy:
        yield running_proxy


@dataclass
class Cluster:
    server: Server
    client: HttpsClient
    webhook: WebhookServer
    etcd: Etcd


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, proxy: Konnectivity) -> Iterator[Cluster]:
    """Run a server all of whose traffic goes through the proxy."""
    connection = {"proxyProtocol": "GRPC", "transport": {"uds": {"udsName": str(proxy.socket)}}}
    path = write_configuration(
        tmp_path_factory.mktemp("configuration") / "egress.json",
        dict.fromkeys(("cluster", "controlplane", "etcd"), connection),
    )
    with running_etcd(tmp_path_factory.mktemp("etcd")) as etcd, webhook_server() as webhook:
        flags = (f"--egress-selector-config-file={path}", f"--etcd-servers={etcd.url}")
        with running(tmp_path_factory.mktemp("server"), *flags) as server:
            client = HttpsClient(server.kubeconfig)
            wait_for_service_account(client.call)
            yield Cluster(server, client, webhook, etcd)


def metric(lines: list[str], name: str, **labels: str) -> float:
    """Return the value of a series; 0 if it is missing."""
    shown = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{{shown}}} ")), 0)


def test_large_objects_are_stored_in_and_read_from_an_etcd_behind_the_proxy(cluster: Cluster) -> None:
    client = cluster.client
    for number in range(8):
        body = {"metadata": {"name": f"large-{number}"}, "data": {"text": str(number) * LARGE}}
        assert client.call("POST", MAPS, body).status == 201
    for number in range(8):
        body = client.call("GET", f"{MAPS}/large-{number}").body
        assert body["data"] == {"text": str(number) * LARGE}
    listed = [item for item in client.call("GET", MAPS).body["items"] if item["metadata"]["name"].startswith("large-")]
    assert sum(len(item["data"]["text"]) for item in listed) == 8 * LARGE
    assert len(cluster.etcd.values("/registry/configmaps/default/")) >= 8


def test_kubelets_and_webhooks_are_reached_through_the_proxy(cluster: Cluster) -> None:
    client, port = cluster.client, int(cluster.webhook.url.rpartition(":")[2])
    cluster.webhook.on("/containerLogs/default/p/c", lambda _: {"from": "kubelet"})
    cluster.webhook.on("/validate", allowed)
    for node, address in (("kubelet", "127.0.0.1"), ("unknown", "unknown.invalid")):
        assert client.call("POST", "/api/v1/nodes", {"metadata": {"name": node}}).status == 201
        endpoint = {"kubeletEndpoint": {"Port": port}}
        status = {"status": {"addresses": [{"type": "InternalIP", "address": address}], "daemonEndpoints": endpoint}}
        assert client.call("PATCH", f"/api/v1/nodes/{node}/status", status, MERGE).status == 200
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        pod = {"metadata": {"name": "p" if node == "kubelet" else "q"}, "spec": spec}
        assert client.call("POST", "/api/v1/namespaces/default/pods", pod).status == 201
    client.call("GET", "/api/v1/namespaces/default/pods/p/log")
    assert any("/containerLogs/default/p/c" in request for request, *_ in cluster.webhook.seen)
    answer = client.call("GET", "/api/v1/namespaces/default/pods/q/log")
    assert answer.status == 500
    assert "lookup unknown.invalid" in answer.message
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}
    webhook: dict[str, Any] = {
        "name": "hook.example.com",
        "clientConfig": cluster.webhook.config("/validate"),
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert client.call("POST", path, {"metadata": {"name": "hook"}, "webhooks": [webhook]}).status == 201

    def called() -> bool:
        created = {"metadata": {"generateName": "s-"}}
        assert client.call("POST", "/api/v1/namespaces/default/secrets", created).status == 201
        return any("/validate" in request for request, *_ in cluster.webhook.seen)

    until(called)
    lines = client.call("GET", "/metrics").body.splitlines()
    dialer, konnectivity_client = "apiserver_egress_dialer_dial_", "konnectivity_network_proxy_client_"
    starts = metric(lines, f"{dialer}start_total", protocol="grpc", transport="uds")
    durations = metric(lines, f"{dialer}duration_seconds_count", protocol="grpc", transport="uds")
    failures = metric(lines, f"{dialer}failure_count", protocol="grpc", stage="proxy", transport="uds")
    assert failures == metric(lines, f"{konnectivity_client}dial_failure_total", reason="endpoint") > 0
    assert starts == durations + failures > 2
    packets = f"{konnectivity_client}stream_packets_total"
    assert metric(lines, packets, packet_type="DIAL_REQ", segment="from_client") == starts
    assert metric(lines, packets, packet_type="DATA", segment="to_client") > 0
    assert metric(lines, f"{konnectivity_client}client_connections", status="ok") > 0


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def tcp_server(serve: Serve) -> AsyncIterator[int]:
    """Run a TCP server and yield its port."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


async def receive_exactly(connection: socket.socket, size: int) -> bytes:
    loop, parts = asyncio.get_running_loop(), bytearray()
    while len(parts) < size:
        data = await loop.sock_recv(connection, 1 << 20)
        assert data
        parts += data
    return bytes(parts)


async def test_megabytes_go_through_the_tunnel_in_both_directions(proxy: Konnectivity) -> None:
    content = bytes(range(256)) * 40_000
    async with tcp_server(echo) as port:
        dial = grpc_dialer(str(proxy.socket))
        connections = await asyncio.gather(*(dial("127.0.0.1", port) for _ in range(3)))
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(60):
            sends = [loop.sock_sendall(connection, content) for connection in connections]
            reads = [receive_exactly(connection, len(content)) for connection in connections]
            results = await asyncio.gather(*reads, *sends)
        assert results[:3] == [content] * 3
        for connection in connections:
            connection.close()
    await eventually(lambda: _value(CONNECTIONS.values.get(("ok",), 0)), lambda count: count == 0)


async def _value(value: float) -> float:
    return value


async def test_a_server_is_stopped_while_nobody_reads_and_continues_afterwards(proxy: Konnectivity) -> None:
    size, sent, sent_at = 64 << 20, 0, 0.0
    loop = asyncio.get_running_loop()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent, sent_at
        while sent < size:
            writer.write(bytes(1 << 16))
            await writer.drain()
            sent, sent_at = sent + (1 << 16), loop.time()
        writer.close()

    async def stopped() -> bool:
        return sent > 0 and loop.time() - sent_at > 0.5

    async with tcp_server(flood) as port:
        connection = await grpc_dialer(str(proxy.socket))("127.0.0.1", port)
        await eventually(stopped, timeout=8)
        assert sent < size
        async with asyncio.timeout(60):
            await receive_exactly(connection, size)
        assert await loop.sock_recv(connection, 1) == b""
        connection.close()


async def test_a_connection_that_is_not_read_for_long_is_closed(
    proxy: Konnectivity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc, "_READ_TIMEOUT", 0.5)
    ended = asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(bytes(1 << 16))
                await writer.drain()
        except OSError:
            ended.set()

    async with tcp_server(flood) as port:
        connection = await grpc_dialer(str(proxy.socket))("127.0.0.1", port)
        async with asyncio.timeout(30):
            await ended.wait()
        connection.close()


async def test_an_end_of_either_side_closes_the_connection(proxy: Konnectivity) -> None:
    ended = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"last words")
        if await reader.read() == b"":
            ended.set()
        writer.close()

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"last words")
        writer.close()

    dial, loop = grpc_dialer(str(proxy.socket)), asyncio.get_running_loop()
    async with tcp_server(greet) as port, asyncio.timeout(30):
        connection = await dial("127.0.0.1", port)
        assert await receive_exactly(connection, 10) == b"last words"
        connection.close()
        await ended.wait()
    async with tcp_server(leave) as port, asyncio.timeout(30):
        connection = await dial("127.0.0.1", port)
        assert await receive_exactly(connection, 10) == b"last words"
        assert await loop.sock_recv(connection, 1) == b""
        connection.close()


async def test_failures_to_dial_have_upstreams_texts(tmp_path: Path, proxy: Konnectivity, sockets: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(DialError, match=rf"^dial tcp 127\.0\.0\.1:{port}: connect: connection refused$"):
            await grpc_dialer(str(proxy.socket))("127.0.0.1", port)
    with pytest.raises(DialError) as raised:
        await grpc_dialer(f"{sockets}/none", timeout=0.3)("127.0.0.1", 1)
    assert str(raised.value) == (
        'context deadline exceeded: connection error: desc = "transport: error while dialing: '
        f'dial unix {sockets}/none: connect: no such file or directory"'
    )


async def test_a_proxy_that_loses_its_agent_ends_connections_and_dials(tmp_path: Path, sockets: Path) -> None:
    with konnectivity(tmp_path / "konnectivity", sockets / "t") as proxy:
        dial = grpc_dialer(str(proxy.socket), timeout=1)
        async with tcp_server(echo) as port:
            connection = await dial("127.0.0.1", port)
            freeze(proxy.agent)
            before = DIAL_FAILURES.values.get(("timeout",), 0)
            with pytest.raises(DialError, match=r"^dial timeout, backstop$"):
                await dial("127.0.0.1", port)
            assert DIAL_FAILURES.values[("timeout",)] == before + 1
            proxy.agent.send_signal(signal.SIGKILL)
            proxy.agent.wait()
            async with asyncio.timeout(30):
                assert await asyncio.get_running_loop().sock_recv(connection, 1) == b""
            connection.close()
            proxy.server.terminate()
            proxy.server.wait()
            with pytest.raises(DialError, match=r"dial unix .*: connect: "):
                await dial("127.0.0.1", port)
