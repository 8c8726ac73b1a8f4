"""An HTTP/2 connection that any number of asyncio tasks share."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any, Self

from support.http2_streams import Http2Streams, Stream, StreamReset


class SharedConnection(asyncio.Protocol):
    """A connection to a server that chooses HTTP/2 by ALPN.

    Create it with `open`. A task that is cancelled must call `cancel` for its stream.
    """

    def __init__(self, authority: str) -> None:
        self._streams = Http2Streams(authority)
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._ponged = asyncio.Event()

    @classmethod
    async def open(cls, host: str, port: int, context: ssl.SSLContext, **more: Any) -> Self:
        """Connect with a context that offers HTTP/2 only. `more` are arguments of the class.

        Raises:
            OSError: the server cannot be reached.
        """
        loop = asyncio.get_running_loop()
        transport, connection = await loop.create_connection(
            lambda: cls(f"{host}:{port}", **more), host, port, ssl=context
        )
        assert transport.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
        return connection

    # --- the transport's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        pongs = self._streams.pongs
        self._streams.receive(data)
        self._send()
        if self._streams.pongs > pongs:
            self._ponged.set()
        self._wake(self._streams.changed)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._streams.receive(b"")
        self._wake(list(self._waiting))

    def _wake(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            waiting = self._waiting.get(number)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    # --- the clients' side

    @property
    def finished(self) -> bool:
        """Whether the connection is closed."""
        return self._transport is None

    @property
    def usable(self) -> bool:
        """Whether the server accepts another request now."""
        return self._transport is not None and not self._streams.draining and self._streams.room

    def request(self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes | None = None) -> Stream:
        """Send a request. The connection must be usable."""
        stream = self._streams.request(method, path, headers, body)
        self._send()
        return stream

    async def head(self, stream: Stream) -> int:
        """Wait for the head of a response, and return its status.

        Raises:
            StreamReset: there will be no response.
        """
        while not stream.status:
            stream.check()
            await self._news(stream)
        return stream.status

    async def read(self, stream: Stream) -> bytes:
        """Return the rest of a body.

        Raises:
            StreamReset: the body is not complete.
        """
        while not stream.over:
            await self._news(stream)
        stream.check()
        return bytes(stream.body)

    async def lines(self, stream: Stream, idle: float) -> AsyncIterator[bytes]:
        """Yield the lines of a body that are not empty.

        Args:
            idle: seconds without data after which it is given up.

        Raises:
            StreamReset: the body is not complete.
            TimeoutError: no data came for `idle` seconds.
        """
        while True:
            *lines, rest = bytes(stream.body).split(b"\n")
            stream.body[:] = rest
            for line in lines:
                if line:
                    yield line
            if stream.over and b"\n" not in stream.body:
                break
            async with asyncio.timeout(idle):
                await self._news(stream)
        stream.check()

    def cancel(self, stream: Stream) -> None:
        """Reset a stream, if its response is not complete."""
        self._streams.cancel(stream)
        self._send()

    async def answers_a_ping(self, timeout: float) -> bool:
        """Send a PING and return whether the server answers it, or one that was sent before, in time."""
        self._ponged.clear()
        self._streams.ping()
        self._send()
        try:
            async with asyncio.timeout(timeout):
                await self._ponged.wait()
        except TimeoutError:
            return False
        return True

    def limit_data(self, size: int) -> None:
        """Send at most this many bytes of a body in each DATA frame."""
        self._streams.largest_data = size

    def stop_reading(self) -> None:
        """Read nothing any more."""
        if self._transport is not None:
            self._transport.pause_reading()

    def close(self) -> None:
        """Close the connection at once. The responses that are not complete fail."""
        if self._transport is not None:
            self._transport.abort()

    async def _news(self, stream: Stream) -> None:
        """Wait until something of a stream has arrived."""
        if self._transport is None:
            raise StreamReset("the connection is closed")
        waiting = self._waiting[stream.number] = asyncio.get_running_loop().create_future()
        try:
            await waiting
        finally:
            del self._waiting[stream.number]

    def _send(self) -> None:
        if self._transport is not None and self._streams.outgoing:
            data = bytes(self._streams.outgoing)
            self._streams.outgoing.clear()
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
