"""Clients that request large responses without reading them: memory is bounded, others are served, and slow readers get
everything.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from support.server import Server, running
from support.wire import Client

TOKENS: Final = Path(__file__).parents[2] / "contract" / "tokens.csv"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
CREDENTIALS: Final = b"Host: localhost\r\nAuthorization: Bearer admin-token\r\n"
DEAF: Final = 40
PIPELINED: Final = 100
MEGABYTES: Final = 20
"""The names of the ConfigMaps in the list."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(
        tmp_path_factory.mktemp("unread"), f"--token-auth-file={TOKENS}", "--authorization-mode=RBAC"
    ) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
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


def connection(server: Server, stack: contextlib.ExitStack) -> ssl.SSLSocket:
    """A connection with small kernel buffers."""
    address = urlsplit(server.url)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    plain.settimeout(60)
    plain.connect((address.hostname, address.port))
    context = ssl.create_default_context(cafile=str(server.ca))
    return stack.enter_context(context.wrap_socket(plain, server_hostname=address.hostname))


def request(path: str, headers: bytes = b"") -> bytes:
    return f"GET {path} HTTP/1.1\r\n".encode() + CREDENTIALS + headers + b"\r\n"


def memory(server: Server) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def rejected() -> bytes:
    """A create with so many errors that its response has the largest possible size."""
    body = b'{"metadata":{"name":"m"},"data":{' + b",".join(b'"bad key %d":""' % i for i in range(20_000)) + b"}}"
    head = (
        f"POST {MAPS} HTTP/1.1\r\n".encode()
        + CREDENTIALS
        + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    return head + body


ASKED: Final = {
    "list": request(MAPS),
    "table": request(MAPS, b"Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"),
    "one object": request(f"{MAPS}/large-1"),
    "yaml": request(f"{MAPS}/large-1", b"Accept: application/yaml\r\n"),
    "openapi": request("/openapi/v2"),
    "discovery": request("/apis", b"Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n"),
    "small objects": request(f"{MAPS}/kube-root-ca.crt"),
    "compressed list": request(MAPS, b"Accept-Encoding: gzip\r\n"),
}


@pytest.mark.parametrize("asked", [*ASKED.values(), rejected()], ids=[*ASKED, "error"])
@pytest.mark.timeout(180)
def test_unread_responses_take_little_memory_and_delay_no_one(server: Server, client: Client, asked: bytes) -> None:
    assert client("GET", f"{MAPS}/kube-root-ca.crt").status == 200
    before = memory(server)
    pipelined = PIPELINED if asked.startswith(b"GET") else 1
    with contextlib.ExitStack() as stack:
        deaf = [connection(server, stack) for _ in range(DEAF)]
        for one in deaf:
            one.sendall(asked * pipelined)
        for _ in range(50):
            assert client("GET", f"{MAPS}/kube-root-ca.crt").status == 200
        grown = memory(server) - before
    assert grown < 200 << 20, f"{grown >> 20} MB for {DEAF} connections"


@pytest.mark.timeout(180)
def test_a_slow_reader_gets_its_whole_response_beside_those_that_read_nothing(server: Server, client: Client) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(DEAF):
            connection(server, stack).sendall(request(f"{MAPS}/large-1", b"Accept: application/yaml\r\n"))
        slow = connection(server, stack)
        slow.sendall(request(f"{MAPS}/large-2", b"Connection: close\r\n"))
        received = bytearray()
        while part := slow.recv(64 << 10):
            received += part
            time.sleep(0.02)
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert len(body) > 1_000_000
    assert body.rstrip().endswith(b"}")


@pytest.mark.timeout(180)
def test_pipelined_requests_are_all_answered_once_their_client_reads(server: Server, client: Client) -> None:
    with contextlib.ExitStack() as stack:
        late = connection(server, stack)
        late.sendall(request(f"{MAPS}/large-3") * 19 + request(f"{MAPS}/large-3", b"Connection: close\r\n"))
        assert client("GET", "/readyz").status == 200
        received = bytearray()
        while part := late.recv(1 << 20):
            received += part
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 20
    assert len(received) > 20_000_000
