"""A blocking HTTP/2 connection, which any number of requests share."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterable
from pathlib import Path

from support.http2_streams import Http2Streams, Stream


def http2_context(ca: str | Path) -> ssl.SSLContext:
    """Return a context for a server whose certificate a CA bundle verifies. It offers HTTP/2 only."""
    context = ssl.create_default_context(cafile=str(ca))
    context.set_alpn_protocols(["h2"])
    return context


class Http2Connection:
    """A connection to a server that chooses HTTP/2 by ALPN.

    Args:
        context: as `http2_context` returns it.
        timeout: seconds without a byte of the server after which a response is given up.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext, timeout: float) -> None:
        plain = socket.create_connection((host, port), timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = context.wrap_socket(plain, server_hostname=host)
        assert self._socket.selected_alpn_protocol() == "h2"
        self._timeout = timeout
        self._streams = Http2Streams(f"{host}:{port}")

    @property
    def usable(self) -> bool:
        """Whether the server accepts further requests."""
        return not self._streams.draining

    def request(self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes | None = None) -> Stream:
        """Send a request, and wait for the head of its response.

        Raises:
            StreamReset: there will be no response.
            TimeoutError: the server is silent.
        """
        stream = self._streams.request(method, path, headers, body)
        while not stream.status and not stream.over:
            self._exchange(self._timeout)
        if not stream.status:
            stream.check()
        return stream

    def begin(self, requests: Iterable[tuple[str, str, Iterable[tuple[str, str]]]]) -> list[Stream]:
        """Send requests without a body at once: method, path and headers. `receive_all` receives the responses."""
        streams = [self._streams.request(*request) for request in requests]
        self._send()
        return streams

    def receive_all(self, streams: Iterable[Stream]) -> None:
        """Receive until all these streams are over."""
        for stream in streams:
            while not stream.over:
                self._exchange(self._timeout)

    def read(self, stream: Stream) -> bytes:
        """Return the rest of a body.

        Raises:
            StreamReset: the body is not complete.
            TimeoutError: the server is silent.
        """
        while not stream.over:
            self._exchange(self._timeout)
        stream.check()
        body, stream.body = stream.body, bytearray()
        self._send()
        return bytes(body)

    def read_line(self, stream: Stream, deadline: float) -> bytes:
        """Return the next line of a body, or none at its end or at a time of the monotonic clock."""
        while b"\n" not in stream.body and not stream.over:
            if (left := deadline - time.monotonic()) <= 0:
                return b""
            with contextlib.suppress(TimeoutError):
                self._exchange(left)
        line, newline, rest = stream.body.partition(b"\n")
        stream.body = rest
        return bytes(line + newline)

    def cancel(self, stream: Stream) -> None:
        """Reset a stream, if its response is not complete."""
        self._streams.cancel(stream)
        self._send()

    def close(self) -> None:
        self._socket.close()

    def _exchange(self, timeout: float) -> None:
        """Send what is due, and process what the server sends next."""
        self._send()
        self._socket.settimeout(timeout)
        try:
            data = self._socket.recv(1 << 18)
        except (ConnectionError, ssl.SSLError):
            data = b""
        self._streams.receive(data)

    def _send(self) -> None:
        self._socket.settimeout(self._timeout)
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # what the server has sent before can still be read
            self._socket.sendall(self._streams.outgoing)
        self._streams.outgoing.clear()
