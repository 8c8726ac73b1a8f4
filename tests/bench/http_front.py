"""CPU overhead of the HTTP server compared with a raw ASGI "hello" on stock uvicorn, both over TLS, in microseconds per
request.

Run it with: PYTHONPATH=services python tests/bench/http_front.py
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import ssl
import sys
import tempfile
from typing import Any

import uvicorn
import uvloop

from tetrapod.generic.certificates import Pki, write_pki
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import CertificatePair, ServingTLS

BODY = b"x" * 1024
CONNECTIONS = 32
REQUESTS = 40_000
REQUEST = (
    b"GET /api/v1/namespaces/default/pods/example HTTP/1.1\r\nHost: localhost:6443\r\nUser-Agent: kubectl/v1.37.1\r\n"
    b"Accept: application/json\r\nAuthorization: Bearer abcdefghijklmnopqrstuvwxyz\r\nAccept-Encoding: gzip\r\n\r\n"
)


async def hello_asgi(scope: Any, receive: Any, send: Any) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [
                (b"content-type", b"application/json"),
                (b"cache-control", b"no-cache, private"),
                (b"content-length", b"1024"),
            ],
        }
    )
    await send({"type": "http.response.body", "body": BODY})


async def hello(request: Request) -> Response:
    return Response(200, [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")], BODY)


async def serve_asgi(pki: Pki, ready: Any) -> None:
    config = uvicorn.Config(
        hello_asgi,
        port=0,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ssl_certfile=str(pki.serving[0]),
        ssl_keyfile=str(pki.serving[1]),
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    ready.send(server.servers[0].sockets[0].getsockname()[1])
    await measure(ready, server.main_loop())


async def serve_ours(pki: Pki, ready: Any) -> None:
    pair = CertificatePair(str(pki.serving[0]), str(pki.serving[1]))
    server = HttpServer(hello, tls=ServingTLS([pair], [str(pki.client_ca)]))
    await server.start()
    ready.send(server.port)
    await measure(ready, asyncio.sleep(0))


async def measure(pipe: Any, background: Any) -> None:
    task = asyncio.ensure_future(background)
    while True:
        while not pipe.poll():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        if pipe.recv() == "end":
            task.cancel()
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send(used.ru_utime + used.ru_stime)


def child(which: str, pki: Pki, pipe: Any) -> None:
    uvloop.run(serve_asgi(pki, pipe) if which == "asgi" else serve_ours(pki, pipe))


class Load(asyncio.Protocol):
    def __init__(self, count: int) -> None:
        self.left = count
        self.got = 0
        self.size = 0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        if not self.size:
            self.size = data.index(b"\r\n\r\n") + 4 + len(BODY)
        self.got += len(data)
        if self.got >= self.size:
            self.got -= self.size
            self.left -= 1
            if self.left:
                self.transport.write(REQUEST)
            else:
                self.transport.close()
                self.done.set_result(None)


async def load(port: int, pki: Pki) -> None:
    context = ssl.create_default_context(cafile=str(pki.ca))
    loop = asyncio.get_running_loop()
    connections = await asyncio.gather(
        *(
            loop.create_connection(lambda: Load(REQUESTS // CONNECTIONS), "localhost", port, ssl=context, family=2)
            for _ in range(CONNECTIONS)
        )
    )
    await asyncio.gather(*(protocol.done for _, protocol in connections))


def run(which: str, pki: Pki) -> float:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=child, args=(which, pki, theirs))
    process.start()
    port = ours.recv()
    uvloop.run(load(port, pki))
    ours.send("usage")
    before = ours.recv()
    uvloop.run(load(port, pki))
    ours.send("usage")
    used = ours.recv() - before
    ours.send("end")
    process.join()
    return float(used) / REQUESTS * 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        pki = write_pki(directory, ["localhost"])
        results = {which: min(run(which, pki) for _ in range(3)) for which in ("asgi", "ours")}
    for which, micros in results.items():
        print(f"{which:5} {micros:6.1f} µs of server CPU per request")
    ratio = results["ours"] / results["asgi"]
    print(f"ratio {ratio:.2f} (target 1.15)")
    sys.exit(ratio > 1.15)


if __name__ == "__main__":
    main()
