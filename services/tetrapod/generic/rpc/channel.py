"""Calls to one address over one connection, which is made on demand and again after it was lost."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Callable

from tetrapod.generic.dialing import Dialer, connect, unix_socket
from tetrapod.generic.http.buffered_protocol import Buffered
from tetrapod.generic.rpc.connection import ConnectionOptions, Http2Connection
from tetrapod.generic.rpc.errors import Code, RpcError
from tetrapod.generic.rpc.headers import request_block
from tetrapod.generic.rpc.stream import Call
from tetrapod.machinery.golang.ip_addresses import join_host_port


class Channel:
    """A gRPC channel to one server, over one connection at a time.

    Call `connect` before the first call and after a loss.

    A server that answers neither a call nor a ping within `response_timeout` seconds is unresponsive: `on_unresponsive`
    is called, and repeatable calls end with UNAVAILABLE.
    """

    def __init__(
        self,
        host: str,
        port: int,
        tls: Callable[[], ssl.SSLContext] | None = None,
        *,
        path: str = "",
        response_timeout: float = math.inf,
        on_unresponsive: Callable[[], None] | None = None,
        dialer: Dialer | None = None,
        options: ConnectionOptions | None = None,
    ) -> None:
        """Create a channel; `connect` opens the connection.

        Args:
            host: the host, or, with `path`, the name of the server for the authority and its certificate.
            port: the port; not used with `path`.
            tls: returns the TLS context of each new connection; None means plain TCP.
            path: the path of a Unix socket, instead of host and port; "" for none. That of an abstract socket begins
                with a NUL byte.
            response_timeout: the seconds after which a server that does not answer counts as unresponsive.
            on_unresponsive: called when the server is unresponsive; None for no callback.
            dialer: connects by way of a proxy; None to connect directly. A Unix socket is always connected directly.
            options: how the connection is used; None for the options of etcd.
        """
        self._dialer = dialer
        self._host = host
        self._port = port
        self._tls = tls
        self._scheme = "https" if tls is not None else "http"
        self._authority = host if path else join_host_port(host, port)
        self._path = path
        self._response_timeout = response_timeout
        self._on_unresponsive = on_unresponsive
        self._options = options or ConnectionOptions()
        self._connection: Http2Connection | None = None
        self._closed = False

    @property
    def ready(self) -> bool:
        """Whether calls are possible: the channel is connected, and the connection accepts new calls."""
        return self._connection is not None and not self._connection.closing

    async def connect(self) -> None:
        """Connect, and return once calls are possible.

        Do nothing if the channel is ready. Must not be called concurrently. The caller sets a timeout if it needs one.

        Raises:
            RpcError, OSError: the connection failed, or the channel was closed.
        """
        if self.ready:
            return
        if self._closed:
            raise RpcError(Code.CANCELLED, "the channel is closed")
        connection = Http2Connection(self._response_timeout, self._on_unresponsive, self._options)
        await self._open_transport(connection)
        try:
            failure = await connection.ready
        except BaseException:
            connection.close()
            raise
        if failure is not None:
            connection.close()
            raise failure.error()
        self._connection = connection

    async def _open_transport(self, connection: Http2Connection) -> None:
        tls = None if self._tls is None else self._tls()
        name = self._host if tls is not None else None
        if self._path:
            await self._open_unix_socket(connection, tls, name)
            return
        await connect(self._dialer, lambda: Buffered(connection), self._host, self._port, tls=tls, server_name=name)

    async def _open_unix_socket(
        self, connection: Http2Connection, tls: ssl.SSLContext | None, name: str | None
    ) -> None:
        """Connect `connection` to the Unix socket of this channel.

        The socket is created here, because uvloop's create_unix_connection cannot connect to an abstract socket by its
        path.

        Args:
            connection: the protocol of the new connection.
            tls: the TLS context; None for no TLS.
            name: the name that the server's certificate must have; None without TLS.

        Raises:
            OSError: connecting or the TLS handshake failed.
        """
        loop = asyncio.get_running_loop()
        unix = unix_socket()
        try:
            await loop.sock_connect(unix, self._path)
            await loop.create_unix_connection(lambda: Buffered(connection), sock=unix, ssl=tls, server_hostname=name)
        except BaseException:
            unix.close()
            raise

    async def unary(
        self,
        path: str,
        message: bytes,
        timeout: float,
        metadata: tuple[tuple[str, str], ...] = (),
        *,
        repeatable: bool = False,
    ) -> bytes:
        """Send a message and return the only message of the response.

        Args:
            path: the method, such as `/etcdserverpb.KV/Range`.
            message: the encoded message.
            timeout: in seconds.
            metadata: further headers, with lower-case names.
            repeatable: whether the call has no side effects, so that it is ended if the server is unresponsive.

        Raises:
            RpcError: the call failed, or the channel is not connected.
        """
        call = await self._open_connection.begin(
            request_block(self._scheme, self._authority, path, timeout, metadata), message, repeatable=repeatable
        )
        return await call.unary(timeout)

    async def stream(self, path: str, metadata: tuple[tuple[str, str], ...] = ()) -> Call:
        """Start a call with any number of messages in both directions. It is ended if the server is unresponsive.

        Args:
            path: the method.
            metadata: further headers, with lower-case names.

        Raises:
            RpcError: the channel is not connected.
        """
        return await self._open_connection.begin(
            request_block(self._scheme, self._authority, path, None, metadata), None, repeatable=True
        )

    @property
    def _open_connection(self) -> Http2Connection:
        if self._connection is None or self._connection.closing:
            raise RpcError(Code.UNAVAILABLE, f"not connected to {self._authority}")
        return self._connection

    async def close(self) -> None:
        """Close the connection and end its calls with UNAVAILABLE. The channel cannot be connected again."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()
            await asyncio.sleep(0)
