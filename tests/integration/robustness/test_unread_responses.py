"""Clients that request large responses without reading them: memory is bounded, others are served, and slow readers get
everything. Over HTTP/2 the requests are streams of one connection, and over HTTP/1.1 they are pipelined.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from support.attacked import Attacked, one_process
from support.http2_connection import http2_context
from support.http2_streams import Http2Streams, Stream
from support.wire import Client

pytestmark = pytest.mark.long

MAPS: Final = "/api/v1/namespaces/default/configmaps"
CREDENTIALS: Final = (("Host", "localhost"), ("Authorization", "Bearer admin-token"))
DEAF: Final = 40
PIPELINED: Final = 100
STREAMS: Final = 3
"""Streams of each connection. Their requests are handled at the same time, and the administrator's are not queued."""
MEGABYTES: Final = 20
"""The names of the ConfigMaps in the list."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with one_process(tmp_path_factory.mktemp("unread")) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Attacked) -> Iterator[Client]:
    with Client(server) as client:
        for i in range(MEGABYTES):
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"large-{i}"},
                "data": {"k": f"{i}" + "x" * 1_000_000},
            }
            assert client("POST", MAPS, body).status == 201
        yield client


@dataclass(frozen=True)
class Sent:
    """A request."""

    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    def http1(self, *more: tuple[str, str]) -> bytes:
        """Return the request in HTTP/1.1, with more headers."""
        length = () if self.body is None else (("Content-Length", str(len(self.body))),)
        lines = [f"{name}: {value}" for name, value in (*CREDENTIALS, *self.headers, *length, *more)]
        method = "GET" if self.body is None else "POST"
        return "\r\n".join([f"{method} {self.path} HTTP/1.1", *lines, "", ""]).encode() + (self.body or b"")

    def begin(self, streams: Http2Streams) -> Stream:
        """Send the request on a new stream."""
        method = "GET" if self.body is None else "POST"
        return streams.request(method, self.path, (*CREDENTIALS, *self.headers), self.body)


def connection(server: Attacked, stack: contextlib.ExitStack, *, http2: bool = False) -> ssl.SSLSocket:
    """A connection with small kernel buffers."""
    address = urlsplit(server.url)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    plain.settimeout(60)
    plain.connect((address.hostname, address.port))
    context = http2_context(server.ca) if http2 else ssl.create_default_context(cafile=str(server.ca))
    return stack.enter_context(context.wrap_socket(plain, server_hostname=address.hostname))


def send(to: ssl.SSLSocket, sent: Sent, count: int, *, http2: bool) -> None:
    """Send a request some times, and read nothing but the windows that the body of one takes."""
    if not http2:
        to.sendall(sent.http1() * count)
        return
    streams = Http2Streams("localhost")
    begun = [sent.begin(streams) for _ in range(count)]
    to.sendall(streams.outgoing)
    while any(stream.unsent and not stream.over for stream in begun):
        streams.outgoing.clear()
        streams.receive(to.recv(1 << 16))
        to.sendall(streams.outgoing)


def memory(server: Attacked) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def rejected() -> Sent:
    """A create with so many errors that its response has the largest possible size."""
    body = b'{"metadata":{"name":"m"},"data":{' + b",".join(b'"bad key %d":""' % i for i in range(20_000)) + b"}}"
    return Sent(MAPS, (("Content-Type", "application/json"),), body)


def accepting(path: str, accept: str) -> Sent:
    return Sent(path, (("Accept", accept),))


ASKED: Final = {
    "list": Sent(MAPS),
    "table": accepting(MAPS, "application/json;as=Table;v=v1;g=meta.k8s.io"),
    "one object": Sent(f"{MAPS}/large-1"),
    "yaml": accepting(f"{MAPS}/large-1", "application/yaml"),
    "openapi": Sent("/openapi/v2"),
    "discovery": accepting("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    "small objects": Sent(f"{MAPS}/kube-root-ca.crt"),
    "compressed list": Sent(MAPS, (("Accept-Encoding", "gzip"),)),
}


@pytest.mark.parametrize("asked", [*ASKED.values(), rejected()], ids=[*ASKED, "error"])
@pytest.mark.timeout(180)
def test_unread_responses_take_little_memory_and_delay_no_one(
    server: Attacked, client: Client, asked: Sent, http2: bool
) -> None:
    assert client("GET", f"{MAPS}/kube-root-ca.crt").status == 200
    before = memory(server)
    with contextlib.ExitStack() as stack:
        deaf = [connection(server, stack, http2=http2) for _ in range(DEAF)]
        for one in deaf:
            send(one, asked, 1 if asked.body else STREAMS if http2 else PIPELINED, http2=http2)
        for _ in range(50):
            assert client("GET", f"{MAPS}/kube-root-ca.crt").status == 200
        grown = memory(server) - before
    assert grown < 200 << 20, f"{grown >> 20} MB for {DEAF} connections"


@pytest.mark.timeout(180)
def test_a_slow_reader_gets_its_whole_response_beside_those_that_read_nothing(server: Attacked, client: Client) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(DEAF):
            send(connection(server, stack), ASKED["yaml"], 1, http2=False)
        slow = connection(server, stack)
        slow.sendall(Sent(f"{MAPS}/large-2").http1(("Connection", "close")))
        received = bytearray()
        while part := slow.recv(64 << 10):
            received += part
            time.sleep(0.02)
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert len(body) > 1_000_000
    assert body.rstrip().endswith(b"}")


@pytest.mark.timeout(180)
def test_a_slow_reader_of_http_2_gets_whole_responses_beside_streams_that_it_does_not_widen(
    server: Attacked, client: Client
) -> None:
    """Streams whose windows are used up keep nothing from the others of their connection."""
    with contextlib.ExitStack() as stack:
        slow = connection(server, stack, http2=True)
        streams = Http2Streams("localhost")
        unread = [ASKED["one object"].begin(streams) for _ in range(DEAF)]
        for stream in unread:
            streams.neglect(stream)
        whole = [Sent(f"{MAPS}/large-2").begin(streams) for _ in range(3)]
        while not all(stream.over for stream in whole):
            slow.sendall(streams.outgoing)
            streams.outgoing.clear()
            streams.receive(slow.recv(64 << 10))
            time.sleep(0.005)
    assert [json.loads(bytes(stream.body))["metadata"]["name"] for stream in whole] == ["large-2"] * 3
    assert not any(stream.ended for stream in unread)


@pytest.mark.timeout(180)
def test_pipelined_requests_are_all_answered_once_their_client_reads(server: Attacked, client: Client) -> None:
    with contextlib.ExitStack() as stack:
        late = connection(server, stack)
        large = Sent(f"{MAPS}/large-3")
        late.sendall(large.http1() * 19 + large.http1(("Connection", "close")))
        assert client("GET", "/readyz").status == 200
        received = bytearray()
        while part := late.recv(1 << 20):
            received += part
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 20
    assert len(received) > 20_000_000
