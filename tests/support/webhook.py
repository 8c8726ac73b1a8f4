"""A webhook server over TLS with its own CA, whose responses can be late, truncated, huge, or not HTTP.

The response of a path is a function of the decoded request body. It returns an object (sent as JSON with status 200),
an `Answer`, raw bytes, or `HOLD`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tetrapod.generic.certificates.authority import Authority

HOLD = object()
"""Send nothing and keep the connection open."""


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    after: float = 0.0
    length: int | None = None  # a Content-Length other than the length of the body


Respond = Callable[[Any], Any]


def _not_found(_: Any) -> Answer:
    return Answer(404, b"not here\n", {"content-type": "text/plain"})


class WebhookServer:
    """A webhook server. `seen` lists its requests as (method and path with query, headers, decoded body)."""

    def __init__(
        self,
        hosts: tuple[str, ...] = ("127.0.0.1", "localhost"),
        *,
        authority: Authority | None = None,
        tls: bool = True,
    ) -> None:
        self.authority = authority or Authority.create("webhook-ca")
        self.hosts, self.tls = hosts, tls
        self.paths: dict[str, Respond] = {}
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.connections = 0
        self.writers: list[asyncio.StreamWriter] = []
        """The writers of all connections so far, also of closed ones."""
        self.port = 0
        self.certificate = b""
        """The serving certificate in PEM; empty before the server runs."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.certificate_pem).decode()

    def on(self, path: str, respond: Respond) -> None:
        self.paths[path] = respond

    def config(self, path: str) -> dict[str, Any]:
        """Return the `clientConfig` for a path."""
        return {"url": self.url + path, "caBundle": self.ca_bundle}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line, *rest = head.decode("latin-1").split("\r\n")
                method, target, _ = line.split(" ")
                headers = {k.lower(): v.strip() for k, _, v in (h.partition(":") for h in rest if h)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                decoded = json.loads(body) if body else None
                self.seen.append((f"{method} {target}", headers, decoded))
                respond: Respond = self.paths.get(target.partition("?")[0], _not_found)
                made: Any = respond(decoded)
                if isinstance(made, Awaitable):
                    made = await made
                if made is HOLD:
                    await asyncio.sleep(3600)
                if isinstance(made, bytes):
                    writer.write(made)
                    await writer.drain()
                    return
                await self._send(writer, made if isinstance(made, Answer) else Answer(body=json.dumps(made).encode()))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except asyncio.CancelledError:  # the server stops; asyncio would log the error if it were raised again
            writer.transport.abort()
        finally:
            with contextlib.suppress(Exception):
                writer.close()

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        if answer.after:
            await asyncio.sleep(answer.after)
        lines = [
            f"HTTP/1.1 {answer.status} X",
            f"content-length: {len(answer.body) if answer.length is None else answer.length}",
        ]
        lines += [f"{k}: {v}" for k, v in answer.headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + answer.body)
        await writer.drain()
        if answer.length is not None:
            raise ConnectionError

    def context(self) -> ssl.SSLContext | None:
        if not self.tls:
            return None
        self.certificate, key = self.authority.issue_server("webhook", self.hosts)
        with tempfile.TemporaryDirectory() as directory:
            files = Path(directory, "tls.crt"), Path(directory, "tls.key")
            files[0].write_bytes(self.certificate)
            files[1].write_bytes(key)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*files)
        return context


@contextlib.contextmanager
def webhook_server(*args: Any, port: int = 0, **kwargs: Any) -> Iterator[WebhookServer]:
    """Run a webhook server in its own thread."""
    server = WebhookServer(*args, **kwargs)
    loop, started, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def main() -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", port, ssl=server.context(), limit=1 << 24)
        server.port = listening.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        listening.close()
        tasks = asyncio.all_tasks(loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in server.writers:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def run() -> None:
        loop.run_until_complete(main())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)


def allowed(review: Any, **more: Any) -> dict[str, Any]:
    """Return the response of an admission webhook that allows the request."""
    return answered(review, allowed=True, **more)


def answered(review: Any, **response: Any) -> dict[str, Any]:
    return {
        "kind": "AdmissionReview",
        "apiVersion": review["apiVersion"],
        "response": {"uid": review["request"]["uid"], **response},
    }


def json_patch(*operations: dict[str, Any]) -> dict[str, str]:
    return {"patch": base64.b64encode(json.dumps(operations).encode()).decode(), "patchType": "JSONPatch"}
