"""An HTTP/2 server whose connections are coroutines that send any frame, also wrong ones."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence

import hpack

from tetrapod.generic.http2 import frames
from tetrapod.generic.proxy import ClientTLS, Endpoint

Fields = Sequence[tuple[str, str]]
OK: Fields = [(":status", "200")]


class Http2Peer:
    """The server's side of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._encoder, self._decoder = hpack.Encoder(), hpack.Decoder()

    async def greet(self, settings: dict[int, int] | None = None) -> None:
        assert await self.reader.readexactly(len(frames.PREFACE)) == frames.PREFACE
        self.writer.write(frames.settings(settings or {}))

    async def frame(self, *kinds: int) -> tuple[int, int, int, bytes]:
        """Return kind, flags, stream and payload of the next frame of these types, ignoring others."""
        while True:
            size, kind, flags, stream = frames.read_head(await self.reader.readexactly(frames.HEAD_SIZE), 0)
            payload = await self.reader.readexactly(size)
            if kind in kinds:
                return kind, flags, stream, payload

    async def request(self) -> tuple[int, list[tuple[str, str]]]:
        """Return the stream and the fields of the next request."""
        _, flags, stream, block = await self.frame(frames.HEADERS)
        while not flags & frames.END_HEADERS:
            _, flags, _, more = await self.frame(frames.CONTINUATION)
            block += more
        return stream, [(str(name), str(value)) for name, value in self._decoder.decode(block)]

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def headers(self, stream: int, fields: Fields = OK, *, end: bool = False) -> None:
        flags = frames.END_STREAM if end else 0
        self.send(frames.header_frames(self._encoder.encode(fields), flags, stream, frames.DEFAULT_FRAME))

    def data(self, stream: int, body: bytes, *, end: bool = False) -> None:
        self.send(frames.frame(frames.DATA, frames.END_STREAM if end else 0, stream, body))

    def answer(self, stream: int, body: bytes = b"done") -> None:
        self.headers(stream)
        self.data(stream, body, end=True)


class Http2Backend:
    """A TLS server that passes each connection to a coroutine.

    Args:
        serve: the coroutine function. An error that it raises is in `errors`.
        context: the TLS context of the server, with its certificate.
        protocols: the protocols that it offers by ALPN.
    """

    def __init__(
        self,
        serve: Callable[[Http2Peer], Awaitable[None]],
        context: ssl.SSLContext,
        protocols: Sequence[str] = ("h2", "http/1.1"),
    ) -> None:
        self._serve, self._context = serve, context
        self._context.set_alpn_protocols(list(protocols))
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.errors: list[BaseException] = []

    async def __aenter__(self) -> Http2Backend:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        return self

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(Http2Peer(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        except AssertionError as error:
            self.errors.append(error)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    @property
    def endpoint(self) -> Endpoint:
        port: int = self._server.sockets[0].getsockname()[1]
        return Endpoint("127.0.0.1", port, ClientTLS(insecure=True, server_name="localhost"))

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not self.errors
