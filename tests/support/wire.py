"""HTTP clients that send requests as given, malformed ones included, for tests of how a server handles bad clients.

`Client` speaks HTTP/1.1 or HTTP/2. The functions below it send bytes of HTTP/1.1.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from support.http2_connection import Http2Connection, http2_context
from support.http2_streams import StreamReset
from tetrapod.generic.http2 import frames

http.client._MAXHEADERS = 1000  # type: ignore[attr-defined]  # 4,096 characters of warnings may be 200 headers


class Target(Protocol):
    """A server: its URL, and the CA bundle that verifies its certificate."""

    @property
    def url(self) -> str: ...

    @property
    def ca(self) -> Path: ...


@dataclass(frozen=True)
class Endpoint:
    """A `Target` made of its two values."""

    url: str
    ca: Path


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def is_accidental_error(answer: Answer) -> bool:
    """Report whether the server failed by accident: a 5xx without a Status.

    Upstream sends a few 500s deliberately, with a Status.
    """
    if answer.status < 500 or answer.status in (501, 503, 504):
        return False
    try:
        return not (isinstance(answer.json, dict) and answer.json.get("kind") == "Status")
    except ValueError:
        return True


class Client:
    """An HTTP client with one connection, which it opens again after the server has closed it."""

    def __init__(self, server: Target, token: str = "admin-token", timeout: float = 20, *, http2: bool = False) -> None:
        self._address = urlsplit(server.url)
        self._context = http2_context(server.ca) if http2 else ssl.create_default_context(cafile=str(server.ca))
        self._token, self._timeout = token, timeout
        self._http2 = http2
        self._connection: http.client.HTTPSConnection | None = None
        self._http2_connection: Http2Connection | None = None

    def __call__(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request. A body of bytes is sent as it is, any other is encoded as JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        for last in (False, True):
            try:
                return (self._send_http2 if self._http2 else self._send)(method, path, body, sent)
            except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError):
                self.close()
                if last:
                    raise
        raise AssertionError

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        if self._connection is None:
            assert self._address.hostname is not None
            self._connection = http.client.HTTPSConnection(
                self._address.hostname, self._address.port, context=self._context, timeout=self._timeout
            )
        connection = self._connection
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        if body is not None:
            # the server may have answered before it has read the whole body
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                connection.send(body)
        response = connection.getresponse()
        answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        if response.will_close:
            self.close()
        return answer

    def _send_http2(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Send a request. A stream that is reset as malformed counts as a response with status 400."""
        connection = self._http2_connection
        if connection is None or not connection.usable:
            self.close()
            assert self._address.hostname is not None
            assert self._address.port is not None
            connection = Http2Connection(self._address.hostname, self._address.port, self._context, self._timeout)
            self._http2_connection = connection
        try:
            stream = connection.request(method, path, headers.items(), body)
        except StreamReset as error:
            if error.code != frames.PROTOCOL_ERROR:
                raise
            return Answer(400, {}, b"")
        return Answer(stream.status, dict(stream.headers), connection.read(stream))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._http2_connection is not None:
            self._http2_connection.close()
            self._http2_connection = None


@contextmanager
def raw_connection(server: Target, timeout: float = 20) -> Iterator[ssl.SSLSocket]:
    address = urlsplit(server.url)
    context = ssl.create_default_context(cafile=str(server.ca))
    plain = socket.create_connection((address.hostname, address.port), timeout)
    with context.wrap_socket(plain, server_hostname=address.hostname) as tls:
        yield tls


def send_raw(server: Target, data: bytes, timeout: float = 20) -> bytes:
    """Send bytes over TLS and return everything that the server sends until it closes the connection."""
    with raw_connection(server, timeout) as connection:
        connection.sendall(data)
        return read_to_end(connection)


def read_to_end(connection: ssl.SSLSocket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)
