"""Port forwarding for WebSocket clients: the client's messages contain the bytes of a SPDY connection to the kubelet.

Upstream: k8s.io/apiserver/pkg/util/proxy/streamtunnel.go
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.headers import TEXT_TYPE
from tetrapod.generic.http.request import HeaderList, Hijacked, Request, Response, UpgradeResponse
from tetrapod.generic.http.websocket import (
    BINARY,
    CLOSE,
    NORMAL,
    PING,
    PONG,
    TEXT,
    Messages,
    WebSocketError,
    frame,
    handshake_response,
    offered_protocols,
)
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.exchange import Exchange
from tetrapod.generic.proxy.headers import returned_headers
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.throttle import Throttle
from tetrapod.generic.proxy.transformed_ends import pipe_ends, wait_for_any, wait_for_delivery

_TUNNELS: Final = Counter(
    "apiserver_stream_tunnel_requests_total",
    "Total number of requests that were handled by the StreamTunnelProxy, which processes streaming PortForward/V2",
    ("code",),
)
_PREFIX: Final = "SPDY/3.1+"
_WEBSOCKET: Final = (b"sec-websocket-", b"upgrade", b"connection", b"x-stream-protocol-version")


def tunnelled_protocols(headers: HeaderList) -> list[str]:
    """Return the SPDY protocols that a client requests within a WebSocket, such as `portforward.k8s.io`."""
    requested = offered_protocols(headers)
    return [name.removeprefix(_PREFIX) for name in requested if name.startswith(_PREFIX) and name.endswith(".k8s.io")]


def without_websocket(headers: HeaderList) -> HeaderList:
    """Return a new list of the headers without those of a WebSocket handshake."""
    return [(name, value) for name, value in headers if not name.startswith(_WEBSOCKET)]


async def tunnel(
    pool: BackendPool, endpoint: Endpoint, request: Request, *, target: str, headers: HeaderList
) -> Response:
    """Connect to the kubelet and return a response that tunnels the kubelet's SPDY to the client within a WebSocket.

    If the kubelet does not upgrade, its response is read and returned. If it upgrades, and the handshake of the client
    is invalid, the response is a 400.

    Args:
        pool: the connections.
        endpoint: the kubelet.
        request: the request of the client.
        target: path and query of the request to the kubelet.
        headers: the headers of the request to the kubelet, from which those of the WebSocket handshake are removed.

    Raises:
        BackendError: the kubelet cannot be reached, or does not upgrade and its response breaks off or has a body of
            more than 1 MiB.
    """
    version_headers = [
        (b"x-stream-protocol-version", name.encode("latin-1")) for name in tunnelled_protocols(request.headers)
    ]
    connection = await pool.exchange(
        endpoint, "POST", target, [*without_websocket(headers), *version_headers], upgrade=b"SPDY/3.1"
    )
    if connection.status != 101:
        _TUNNELS.add((str(connection.status),))
        return Response(connection.status, returned_headers(connection.headers), await connection.read(1 << 20))
    chosen = dict(connection.headers).get(b"x-stream-protocol-version", b"").decode("latin-1").strip()
    try:
        head = handshake_response(request.headers, _PREFIX + chosen if chosen else "")
    except WebSocketError as error:
        connection.close()
        _TUNNELS.add(("400",))
        return Response(400, [TEXT_TYPE], f"{error}\n".encode())

    _TUNNELS.add(("101",))

    async def run(client: Hijacked) -> None:
        await _connect(client, connection, head, pool.max_bytes_per_second)

    return UpgradeResponse(run)


async def _connect(client: Hijacked, connection: Exchange, head: bytes, rate: int) -> None:
    """Pass data between the client and the kubelet until one of them closes its connection.

    Args:
        client: the connection of the client, which gets WebSocket messages.
        connection: the connection of the kubelet.
        head: the response to the handshake.
        rate: the limit of bytes per second in each direction; 0 for none.
    """
    client_end, kubelet_end = pipe_ends()
    to_kubelet = Throttle(rate, kubelet_end.write, client_end)
    to_client = Throttle(rate, lambda data: client_end.write(frame(BINARY, data)), kubelet_end)
    messages = Messages()

    def from_client(data: bytes) -> None:
        try:
            for opcode, payload in messages.feed(data):
                if opcode in (BINARY, TEXT):
                    to_kubelet.send(payload)
                elif opcode == PING:
                    client_end.write(frame(PONG, payload))
                elif opcode == CLOSE:
                    client_end.write(frame(CLOSE, payload[:2]))
                    client_end.close()
        except WebSocketError:
            client_end.close()

    client.transport.write(head)
    connection.detach(kubelet_end)
    client.take_over(client_end)
    kubelet_end.receive_with(to_client.send)
    client_end.receive_with(from_client)
    try:
        await wait_for_any(client_end.ended, kubelet_end.ended)
        if client_end.ended.is_set():
            await wait_for_delivery(kubelet_end, to_kubelet)
        else:
            await wait_for_delivery(client_end, to_client)
        client_end.write(frame(CLOSE, NORMAL))
    finally:
        to_kubelet.close()
        to_client.close()
        client_end.close()
        kubelet_end.close()
