"""`Channel`: calls to one address, over one connection that is made when it is needed, and anew after it was lost."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Callable

from tetrapod.generic.http.buffered import Buffered
from tetrapod.generic.rpc.connection import Http2Connection
from tetrapod.generic.rpc.errors import Code, RpcError
from tetrapod.generic.rpc.headers import request_block
from tetrapod.generic.rpc.stream import Call


class Channel:
    """Calls of one server, over one connection, made by `connect`; `path` is a Unix socket's, in place of host and port.

    A server that answers neither a call nor a ping within `patience` seconds is silent: `on_silent` is told, what may be repeated ends.
    """

    def __init__(
        self,
        host: str,
        port: int,
        tls: Callable[[], ssl.SSLContext] | None = None,
        *,
        path: str = "",
        patience: float = math.inf,
        on_silent: Callable[[], None] | None = None,
    ) -> None:
        """`tls` is asked at each connection. With `path`, over that socket of this host; `host` is what the server is called then.

        `patience` and `on_silent`: see Http2Connection.
        """
        self._host = host
        self._port = port
        self._tls = tls
        self._scheme = "https" if tls is not None else "http"
        self._authority = host if path else f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._path = path
        self._patience = patience
        self._on_silent = on_silent
        self._connection: Http2Connection | None = None
        self._closed = False

    @property
    def ready(self) -> bool:
        """Whether it may be called: connected, and the server has not said that it goes away."""
        return self._connection is not None and not self._connection.closing

    async def connect(self) -> None:
        """Returns once the server may be called. Not to be called twice at a time. Raises RpcError, OSError."""
        if self.ready:
            return
        if self._closed:
            raise RpcError(Code.CANCELLED, "the channel is closed")
        connection = Http2Connection(self._patience, self._on_silent)
        await self._reach(connection)
        try:
            await connection.greeted
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    async def _reach(self, connection: Http2Connection) -> None:
        loop = asyncio.get_running_loop()
        if self._path:
            await loop.create_unix_connection(lambda: Buffered(connection), self._path)
            return
        tls = None if self._tls is None else self._tls()
        name = self._host if tls is not None else None
        await loop.create_connection(lambda: Buffered(connection), self._host, self._port, ssl=tls, server_hostname=name)

    async def unary(
        self, path: str, message: bytes, timeout: float, metadata: tuple[tuple[str, str], ...] = (), *, repeatable: bool = False
    ) -> bytes:
        """The one message of the answer. `repeatable`: it changes nothing, and is ended where the server is silent. Raises RpcError."""
        call = await self._open.begin(request_block(self._scheme, self._authority, path, timeout, metadata), message, repeatable=repeatable)
        return await call.unary(timeout)

    async def stream(self, path: str, metadata: tuple[tuple[str, str], ...] = ()) -> Call:
        """A call of any number of messages, either way, which is ended where the server is silent. Raises RpcError."""
        return await self._open.begin(request_block(self._scheme, self._authority, path, None, metadata), None, repeatable=True)

    @property
    def _open(self) -> Http2Connection:
        if self._connection is None or self._connection.closing:
            raise RpcError(Code.UNAVAILABLE, f"not connected to {self._authority}")
        return self._connection

    async def close(self) -> None:
        """Ends the connection and its calls; it cannot be connected again."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()
            await asyncio.sleep(0)
