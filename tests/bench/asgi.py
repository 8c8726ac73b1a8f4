"""Raw ASGI on stock uvicorn (httptools, uvloop) over TLS, in separate processes: `hello` for calibration, and an
aggregated API server.
"""

from __future__ import annotations

import multiprocessing
import ssl
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from bench import processes, wrk
from bench.objects import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator

_HELLO = b"x" * 1024
_RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/v1",
    "resources": [
        {"name": "things", "singularName": "thing", "namespaced": False, "kind": "Thing", "verbs": ["get", "list"]}
    ],
}
_VERSION = {"groupVersion": f"{GROUP}/v1", "version": "v1"}
_GROUP = {"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [_VERSION], "preferredVersion": _VERSION}
_THING = {
    "kind": "Thing",
    "apiVersion": f"{GROUP}/v1",
    "metadata": {"name": "one", "uid": "6f7c4c0e-0000-4000-8000-000000000001", "resourceVersion": "1"},
    "spec": {"text": "x" * 880},
}
_ANSWERS = {
    f"/apis/{GROUP}/v1/things/one": _THING,
    f"/apis/{GROUP}/v1": _RESOURCES,
    f"/apis/{GROUP}": _GROUP,
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
}


def _headers(body: bytes) -> list[tuple[bytes, bytes]]:
    length = str(len(body)).encode()
    return [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-cache, private"),
        (b"content-length", length),
    ]


_HELLO_HEADERS = _headers(_HELLO)


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """A response of 1 kB."""
    await send({"type": "http.response.start", "status": 200, "headers": _HELLO_HEADERS})
    await send({"type": "http.response.body", "body": _HELLO})


async def aggregated(scope: Any, receive: Any, send: Any) -> None:
    """Serve the discovery of one group with one kind, and one object of 1 kB."""
    found = _ANSWERS.get(scope["path"])
    body = orjson.dumps(found) if found is not None else b"404 page not found\n"
    await send({"type": "http.response.start", "status": 200 if found is not None else 404, "headers": _headers(body)})
    await send({"type": "http.response.body", "body": body})


APPS = {"hello": hello, "aggregated": aggregated}


def _serve(app: str, certificate: str, key: str, pipe: Connection) -> None:
    import uvicorn
    import uvloop

    async def main() -> None:
        config = uvicorn.Config(
            APPS[app],
            port=0,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            ssl_version=ssl.PROTOCOL_TLS_SERVER,
        )
        server = uvicorn.Server(config)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        pipe.send(server.servers[0].sockets[0].getsockname()[1])
        await server.main_loop()

    uvloop.run(main())


class Asgi:
    def __init__(self, port: int, pid: int, directory: Path) -> None:
        self.port = port
        self.pid = pid
        self._directory = directory

    def cpu_of_hello(self, seconds: float = 1) -> float:
        """Return the CPU seconds of one request, measured now."""
        before = processes.cpu_seconds(self.pid)
        figures = wrk.run(f"https://127.0.0.1:{self.port}", "hello", wrk.Load("/hello"), seconds, self._directory)
        return (processes.cpu_seconds(self.pid) - before) / max(1, figures.requests)


@contextmanager
def running(app: str, certificate: Path, key: Path, directory: Path) -> Iterator[Asgi]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(app, str(certificate), str(key), theirs), daemon=True)
    process.start()
    try:
        if process.pid is None or not ours.poll(30):
            raise TimeoutError(f"{app} did not start")
        yield Asgi(ours.recv(), process.pid, directory)
    finally:
        process.kill()
        process.join()
