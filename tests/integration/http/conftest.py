"""A server with a given handler on a free port, and a raw client connection to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tetrapod.generic.certificates import Pki, write_pki
from tetrapod.generic.http.connection_state import OPEN, TRANSITIONS
from tetrapod.generic.http.protocol import HttpProtocol
from tetrapod.generic.http.request import Handler
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import CertificatePair, ServingTLS

Serve = Callable[..., Awaitable[HttpServer]]


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Servers run on uvloop.

    TLS and the closing of connections behave differently on asyncio's own loop, so both are tested.
    """
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return write_pki(tmp_path_factory.mktemp("pki"), ["localhost", "127.0.0.1"])


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    servers: list[HttpServer] = []

    async def start(handler: Handler, tls: ServingTLS | None = None, step_warning: float = 0.0) -> HttpServer:
        server = HttpServer(handler, tls=tls, step_warning=step_warning)
        await server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop(0.2)


def undocumented_changes(
    monkeypatch: pytest.MonkeyPatch, owner: type, attribute: str, first: Any, transitions: Mapping[Any, frozenset[Any]]
) -> set[tuple[Any, Any]]:
    """Return a set that receives the changes of an attribute of all instances that `transitions` does not list.

    Args:
        first: the value that an instance must begin with.
    """
    undocumented: set[tuple[Any, Any]] = set()
    slot: Any = vars(owner).get(attribute)  # None if the owner has no __slots__

    def read(instance: Any) -> Any:
        return vars(instance)[attribute] if slot is None else slot.__get__(instance)

    def change(instance: Any, new: Any) -> None:
        try:
            former = read(instance)
        except (KeyError, AttributeError):
            former = None
        if (former is None and new is not first) or (former is not None and new not in transitions[former]):
            undocumented.add((former, new))
        if slot is None:
            vars(instance)[attribute] = new
        else:
            slot.__set__(instance, new)

    monkeypatch.setattr(owner, attribute, property(read, change), raising=False)
    return undocumented


@pytest.fixture(autouse=True)
def only_documented_transitions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which a connection changes its state in a way that `TRANSITIONS` does not list."""
    undocumented = undocumented_changes(monkeypatch, HttpProtocol, "connection_state", OPEN, TRANSITIONS)
    yield
    assert not undocumented


@pytest.fixture
def tls(pki: Pki) -> ServingTLS:
    pair = CertificatePair(str(pki.serving[0]), str(pki.serving[1]))
    return ServingTLS([pair], [str(pki.client_ca), str(pki.front_proxy_ca)])


def client_context(pki: Pki, pair: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pki.ca))
    if pair is not None:
        context.load_cert_chain(*pair)
    return context


class Client:
    """A connection that sends bytes and reads responses."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, server: HttpServer, context: ssl.SSLContext | None = None) -> Client:
        return cls(
            *await asyncio.open_connection("localhost" if context else "127.0.0.1", server.port, ssl=context, family=2)
        )

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def get(self, path: str = "/", headers: str = "") -> None:
        self.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split(" ", 2)[1]), headers

    async def answer(self, *, body: bool = True) -> tuple[int, dict[str, str], bytes]:
        status, headers = await self.head()
        if not body:
            return status, headers, b""
        if headers.get("transfer-encoding") == "chunked":
            chunks = []
            while chunk := await self.chunk():
                chunks.append(chunk)
            return status, headers, b"".join(chunks)
        if "content-length" in headers:
            return status, headers, await self.reader.readexactly(int(headers["content-length"]))
        return status, headers, await self.reader.read()

    async def chunk(self) -> bytes:
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        return data

    async def close(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)
