"""Feature gates of the streams and logs that core passes on from kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import orjson
import pytest

from integration.core.conftest import Core, Serve
from integration.http.conftest import Client
from integration.http.test_answers import upgrading
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.machinery import requestinfo
from tetrapod.machinery.user import UserInfo

TRANSLATED: Final = "TranslateStreamCloseWebsocketRequests"
TUNNELLED: Final = "PortForwardWebsockets"
KUBELETS: Final = "ExtendWebSocketsToKubelet"
PODS: Final = "/api/v1/namespaces/default/pods"
EXEC: Final = ("exec?command=ls&stdout=true", "v5.channel.k8s.io")
FORWARD: Final = ("portforward?ports=80", "SPDY/3.1+portforward.k8s.io")
STREAM: Final = "PodLogsQuerySplitStreams"


@pytest.fixture(autouse=True)
def default_gates() -> Iterator[None]:
    yield
    feature_gates.configure([])


@pytest.mark.parametrize(
    ("stream", "disabled", "declared", "protocol"),
    [
        (EXEC, [], False, "SPDY/3.1"),
        (EXEC, [], True, "websocket"),
        (EXEC, [KUBELETS], True, "SPDY/3.1"),
        (EXEC, [TRANSLATED], False, "websocket"),
        (EXEC, [TUNNELLED], False, "SPDY/3.1"),
        (FORWARD, [], False, "SPDY/3.1"),
        (FORWARD, [], True, "websocket"),
        (FORWARD, [KUBELETS], True, "SPDY/3.1"),
        (FORWARD, [TUNNELLED], False, "websocket"),
        (FORWARD, [TRANSLATED], False, "SPDY/3.1"),
    ],
)
async def test_gates_decide_who_translates_websockets(
    core: Core,
    serve: Serve,
    tls: ServingTLS,
    stream: tuple[str, str],
    disabled: list[str],
    declared: bool,
    protocol: str,
) -> None:
    feature_gates.configure([f"{gate}=false" for gate in disabled])
    upgrades: asyncio.Queue[str] = asyncio.Queue()

    async def kubelet(request: Request) -> Response:
        upgrades.put_nowait(dict(request.headers)[b"upgrade"].decode())
        return await upgrading(request)

    async def front(request: Request) -> Response:
        request.user = UserInfo("alice")
        request.info = requestinfo.parse("POST", request.path, request.query_string)
        return await core.director(request)

    await core.node("n", (await serve(kubelet, tls)).port, *([KUBELETS] if declared else []))
    await core.pod("p", nodeName="n")
    client = await Client.connect(await serve(front))
    target, offered = stream
    client.send(
        (
            f"GET {PODS}/p/{target} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Sec-WebSocket-Protocol: {offered}\r\n\r\n"
        ).encode()
    )
    assert (await client.head())[0] == 101
    assert await asyncio.wait_for(upgrades.get(), timeout=20) == protocol
    await client.close()


async def test_logs_of_one_stream_are_read_with_the_gate(core: Core, serve: Serve, tls: ServingTLS) -> None:
    async def kubelet(request: Request) -> Response:
        return Response(200, [], f"{request.raw_path}?{request.query_string}".encode())

    await core.node("n", (await serve(kubelet, tls)).port)
    await core.pod("p", nodeName="n")
    forbidden = (422, ["stream: Forbidden: may not be specified"])
    assert await _log(core, "?stream=Stdout") == forbidden
    feature_gates.configure([f"{STREAM}=true"])
    path = "/containerLogs/default/p/c"
    assert await _log(core, "?stream=Stdout&limitBytes=5") == (200, f"{path}?limitBytes=5&stream=Stdout")
    assert await _log(core, "?tailLines=1") == (200, f"{path}?stream=All&tailLines=1")
    assert await _log(core, "") == (200, f"{path}?stream=All")
    assert await _log(core, "?stream=other&tailLines=1") == (
        422,
        [
            'stream: Unsupported value: "other": supported values: "All", "Stderr", "Stdout"',
            "[]: Forbidden: `tailLines` and specific `stream` are mutually exclusive for now",
        ],
    )


async def _log(core: Core, query: str) -> tuple[int, object]:
    code, body = await core.client.raw("GET", f"{PODS}/p/log{query}")
    if code == 200:
        return code, body.decode()
    causes = orjson.loads(body)["details"]["causes"]
    return code, [f"{cause['field']}: {cause['message']}" for cause in causes]
