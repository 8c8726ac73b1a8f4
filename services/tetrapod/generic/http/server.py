"""`HttpServer`: a listener that serves a `Handler`. Several may run in one event loop; it does not handle signals.

uvicorn creates the listeners and connections (protocol.py). Its main loop, signal handlers and shutdown are not used,
because they poll, take over the process's signals, and wait for open watches at exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any, Final

import uvicorn

from tetrapod.generic.http.buffered_protocol import Buffered
from tetrapod.generic.http.h2.protocol import Http2Protocol
from tetrapod.generic.http.listening import ConnectionSource, bind
from tetrapod.generic.http.negotiated_protocol import NegotiatedProtocol
from tetrapod.generic.http.protocol import HttpProtocol
from tetrapod.generic.http.request import Handler
from tetrapod.generic.http.server_state import HttpServerState
from tetrapod.generic.http.tls import ServingContext, ServingTLS
from tetrapod.generic.http.unix_sockets import bind_unix, remove_socket

log = logging.getLogger(__name__)

IDLE_CHECK: Final = 5
"""Seconds between two checks for idle connections."""
_POLL_SECONDS: Final = 0.02
"""Seconds between two checks whether all connections are closed."""
_HANDSHAKES_SECONDS: Final = 1.0
"""Seconds in which handshakes may end at shutdown, so that their requests are answered."""


class HttpServer:
    """A server that listens between `start` and `stop`.

    Attributes:
        end_streams: functions that `stop` calls first, to end watches properly. More may be added while the server
            runs.
        unix_socket: the path of a Unix socket to listen on as well, for processes of the same user; "" for none. Set it
            before `start`.
        only_ipv6: whether connections to IPv4 addresses are excluded if the host is `::`. Set it before `start`.
        listener: a socket that is bound to the address already; None to bind one in `start`. Set it before `start`.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        share_port: bool = False,
        tls: ServingTLS | None = None,
        source: ConnectionSource | None = None,
        contended: Callable[[], bool] = bool,
        step_warning: float = 0.0,
    ) -> None:
        """Configure the server; `start` listens.

        Args:
            handler: receives the requests.
            host: the IP address to listen on.
            port: the port to listen on; 0 for one that the kernel chooses.
            share_port: whether other sockets may listen on the same address and port, if they allow it too.
            tls: the TLS configuration; None for plain HTTP.
            source: passes accepted connections to the server, which then does not listen itself; None to listen.
            contended: returns whether requests compete for the event loop. If so, the handling of a request starts as
                soon as it arrives, and not after the current step of the event loop.
            step_warning: seconds from which on a step of the event loop is logged (see loop_monitor.py); 0 to log none.
        """
        self.state = HttpServerState(handler, contended, step_warning, tls.max_streams if tls is not None else 0)
        self.end_streams: list[Callable[[], Awaitable[None] | None]] = []
        self._tls = ServingContext(tls) if tls is not None else None
        self._source = source
        self._accepting: set[asyncio.Task[None]] = set()
        self._share_port = share_port
        self.listener: socket.socket | None = None
        self.unix_socket = ""
        self.only_ipv6 = False
        self._unix_server: asyncio.Server | None = None
        self._ticker: asyncio.Task[None] | None = None
        config = uvicorn.Config(
            _unused_application,
            host=host,
            port=port,
            http=HttpProtocol,
            ws="none",
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ssl_context_factory=self._ssl_context if self._tls is not None else None,
        )
        config.load()
        config.http_protocol_class = _connection  # type: ignore[assignment]
        self._server = uvicorn.Server(config)
        self._server.server_state = self.state
        self._server.lifespan = config.lifespan_class(config)
        self._server.servers = []  # it may be stopped before it listens

    def _ssl_context(self, *_: Any) -> Any:
        assert self._tls is not None
        return self._tls.context

    @property
    def host(self) -> str:
        """The address that the server listens on. Only valid after `start`."""
        return str(self._address()[0])

    @property
    def port(self) -> int:
        """The port that the server listens on, also if the kernel chose it. Only valid after `start`."""
        return int(self._address()[1])

    def _address(self) -> tuple[Any, ...]:
        if self._source is not None:
            return self._source.address
        address: tuple[Any, ...] = self._server.servers[0].sockets[0].getsockname()
        return address

    async def start(self) -> None:
        """Start to listen and to accept connections.

        Raises:
            OSError: the address is not available. The text is Go's.
        """
        self._tick(0)
        config = self._server.config
        listens = self._source is None
        await self._server.startup([self._bound()] if listens else [])
        if self.unix_socket and listens:
            self._unix_server = await asyncio.get_running_loop().create_unix_server(
                self._make_connection, sock=bind_unix(self.unix_socket), backlog=config.backlog
            )
        if self._source is not None:
            self._source.open(self._accept, lambda: len(self.state.connections) + len(self.state.upgraded))
        self._ticker = asyncio.create_task(self._tick_forever(), name="http-server-ticks")

    def _bound(self) -> socket.socket:
        config = self._server.config
        return self.listener or bind(config.host, config.port, share_port=self._share_port, only_ipv6=self.only_ipv6)

    def _accept(self, connection: socket.socket) -> None:
        """Serve a connection that the source has passed on."""
        task = asyncio.create_task(self._serve(connection), name="http-server-accept")
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)

    async def _serve(self, connection: socket.socket) -> None:
        """Start the protocol of a connection. A failed TLS handshake closes the connection and is not raised."""
        ssl = self._server.config.ssl if connection.family in (socket.AF_INET, socket.AF_INET6) else None
        with contextlib.suppress(Exception):
            await asyncio.get_running_loop().connect_accepted_socket(self._make_connection, connection, ssl=ssl)

    def _make_connection(self) -> Buffered:
        return _connection(self._server.config, self.state, app_state={}, _loop=asyncio.get_running_loop())

    async def _tick_forever(self) -> None:
        count = 0
        while True:
            await asyncio.sleep(1 - time.time() % 1)
            count += 1
            self._tick(count)

    def _tick(self, count: int) -> None:
        self.state.date = f"Date: {formatdate(usegmt=True)}\r\n".encode()
        now = asyncio.get_running_loop().time()
        self.state.unread.check(now)
        if count % IDLE_CHECK == 0:
            self.state.forget_closed()
            for connection in list(self.state.connections):
                if isinstance(connection, HttpProtocol | Http2Protocol):
                    connection.check_idle(now)
        if self._tls is not None:
            try:
                if self._tls.reload_if_changed():
                    log.info("serving certificate reloaded")
            except (OSError, ValueError) as error:
                log.error("serving certificate not reloaded: %s", error)

    def lame_duck(self) -> None:
        """Keep accepting connections, but send `Connection: close` with each response.

        Clients then reconnect elsewhere.
        """
        self.state.closing = True

    async def stop(self, timeout: float = 10.0, linger: float = 0.0) -> None:
        """Stop accepting connections, end streams, let requests finish, and close all connections.

        Args:
            timeout: the seconds after which requests that still run are cancelled.
            linger: the seconds for which idle HTTP/1.1 connections stay open, so that clients can close them first. A
                request that arrives in that time is answered; it would be lost if the server closed the connection.
        """
        self.lame_duck()
        for listener in self._server.servers:
            listener.close()
        if self._unix_server is not None:
            self._unix_server.close()
            remove_socket(self.unix_socket)
        if self._source is not None:
            await self._source.close()
            if self._accepting:
                await asyncio.wait(list(self._accepting), timeout=_HANDSHAKES_SECONDS)
        for end_stream in list(self.end_streams):
            result = end_stream()
            if result is not None:
                await result
        for connection in list(self.state.connections):
            if not (isinstance(connection, HttpProtocol) and connection.idle):
                connection.shutdown()
        await self._wait_for_clients_to_close(linger)
        for connection in list(self.state.connections):
            connection.shutdown()
        if self.state.tasks:
            await asyncio.wait(list(self.state.tasks), timeout=timeout)
        tasks = list(self.state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._close_connections()
        if self._ticker is not None:
            self._ticker.cancel()

    async def _wait_for_clients_to_close(self, seconds: float) -> None:
        """Wait until the clients have closed all connections, at most `seconds`."""
        for _ in range(int(seconds / _POLL_SECONDS)):
            if not self.state.connections:
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _close_connections(self) -> None:
        """Close all connections, and abort those whose data is not sent within a second."""
        deadline = time.monotonic() + 1.0
        for transport in self.state.upgraded:
            transport.close()
        while self.state.connections and time.monotonic() < deadline:
            for connection in list(self.state.connections):
                connection.shutdown()
            await asyncio.sleep(0.01)
        for connection in list(self.state.connections):
            connection.transport.abort()
        self.state.connections.clear()


def _connection(config: uvicorn.Config, server_state: HttpServerState, *args: Any, **kwargs: Any) -> Buffered:
    return NegotiatedProtocol(
        lambda: HttpProtocol(config, server_state, *args, **kwargs), lambda: Http2Protocol(server_state)
    )


async def _unused_application(scope: Any, receive: Any, send: Any) -> None:
    """Do nothing. uvicorn requires an application, but our protocol never calls it."""
