"""`HttpServerState`: the state that all connections of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from uvicorn.server import ServerState

from tetrapod.generic.http.loop_monitor import LoopMonitor
from tetrapod.generic.http.request import Handler, Request
from tetrapod.generic.http.request_bodies import RequestBodies
from tetrapod.generic.http.unread_responses import UnreadResponses
from tetrapod.generic.scheduling.step_queue import StepQueue

DEFAULT_STREAMS: Final = 100
"""Requests that a client may have open on an HTTP/2 connection. Clients assume this number until they know.

Upstream: staging/src/k8s.io/apiserver/pkg/server/secure_serving.go, Serve.
"""
PARSING_STEP: Final = 0.005
"""The most seconds of one step of the event loop in which the bytes of several connections are parsed."""


class HttpServerState(ServerState):
    """The state that all connections of one server share.

    Args:
        handler: receives the requests.
        contended: returns whether requests compete for the event loop.
        step_warning: seconds from which on a step of the event loop is logged; 0 to log none.
        max_streams: requests that a client may have open on an HTTP/2 connection; 0 for the default of 100.

    Attributes:
        monitor: measures the steps of the event loop.
        date: the current Date header line.
        closing: whether the server is shutting down: responses carry `Connection: close`.
        upgraded: the transports of hijacked connections, which the server closes when it stops.
        parsing: the connections whose received bytes are parsed in several steps.
        receiving: the connections that are read again, because the handlers of their requests want more of the bodies.
        unread: limits the memory of responses that clients do not read.
        bodies: limits the memory of request bodies.
    """

    def __init__(self, handler: Handler, contended: Callable[[], bool], step_warning: float, max_streams: int) -> None:
        super().__init__()
        self.handler = handler
        self.monitor = LoopMonitor(step_warning, self.in_flight)
        self.contended = contended
        self.date = b""
        self.closing = False
        self.upgraded: set[asyncio.BaseTransport] = set()
        self.parsing = StepQueue(PARSING_STEP)
        self.receiving = StepQueue()
        self.unread = UnreadResponses()
        self.bodies = RequestBodies()
        self.max_streams = max_streams or DEFAULT_STREAMS

    def forget_closed(self) -> None:
        """Remove upgraded connections that have ended from `upgraded`: each has a buffer of 256 kB."""
        self.upgraded = {transport for transport in self.upgraded if not transport.is_closing()}

    def in_flight(self) -> list[Request]:
        """Return the requests that are being handled, the oldest first."""
        connections: Iterable[Any] = self.connections  # they are ours; uvicorn declares other types
        requests = (request for connection in connections for request in connection.requests())
        return sorted(requests, key=lambda request: request.received)
