"""`HttpServerState`: the state that all connections of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.server import ServerState

from tetrapod.generic.http.loop_monitor import LoopMonitor
from tetrapod.generic.http.request import Handler, Request
from tetrapod.generic.http.unread_responses import UnreadResponses


class HttpServerState(ServerState):
    """The state that all connections of one server share.

    Args:
        handler: receives the requests.
        contended: returns whether requests compete for the event loop.
        step_warning: seconds from which on a step of the event loop is logged; 0 to log none.
    """

    def __init__(self, handler: Handler, contended: Callable[[], bool], step_warning: float) -> None:
        super().__init__()
        self.handler = handler
        self.monitor = LoopMonitor(step_warning, self.in_flight)
        self.contended = contended
        self.date = b""
        """The current Date header line."""
        self.closing = False
        """The server is shutting down: responses carry `Connection: close`."""
        self.upgraded: set[asyncio.BaseTransport] = set()
        """The transports of hijacked connections, which the server closes when it stops."""
        self.unread = UnreadResponses()

    def forget_closed(self) -> None:
        """Remove upgraded connections that have ended from `upgraded`: each has a buffer of 256 kB."""
        self.upgraded = {transport for transport in self.upgraded if not transport.is_closing()}

    def in_flight(self) -> list[Request]:
        """Return the requests that are being handled, the oldest first."""
        exchanges = (getattr(connection, "exchange", None) for connection in self.connections)
        return sorted(
            (exchange.request for exchange in exchanges if exchange is not None), key=lambda request: request.received
        )
