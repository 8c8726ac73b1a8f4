"""Rejects new requests while the server shuts down, and waits for those in flight.

The response is a 503 with `Retry-After` and `Connection: close`. A service behind a front proxy adds a header, which
says that the request was not processed. The front proxy can then send even a write to another replica
(proxy/balanced_pool.py).
Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/waitgroup.go, with_retry_after.go
"""

from __future__ import annotations

import asyncio
import contextlib

from tetrapod.generic.http.peers import NOT_PROCESSED
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery.requestinfo import is_long_running


class Draining:
    """The number of requests in flight, without long-running ones, and whether new requests are rejected.

    Args:
        notify_aggregator: whether rejections carry the header for a front proxy that the request was not processed.
    """

    def __init__(self, *, notify_aggregator: bool = False) -> None:
        self.notify_aggregator = notify_aggregator
        self.active = False
        self.in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self) -> None:
        """Reject new requests from now on, except for health checks and /metrics."""
        self.active = True

    async def wait(self, timeout: float) -> None:
        """Wait until no request is in flight, but at most `timeout` seconds. Both outcomes return normally."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):  # asyncio.wait_for may lose a cancellation before Python 3.12
                await self._idle.wait()

    def enter(self) -> None:
        """Count a request that starts. `leave` must be called when it ends."""
        self.in_flight += 1
        self._idle.clear()

    def leave(self) -> None:
        """Count a request that has ended, and wake `wait` if it was the last one."""
        self.in_flight -= 1
        if not self.in_flight:
            self._idle.set()


def with_draining(handler: Handler, draining: Draining) -> Handler:
    """Count the requests in `draining`, and reject them with a 503 while it is active, except for health checks."""

    async def drain(request: Request) -> Response:
        if draining.active and not _is_probe(request.path):
            headers = [
                (b"retry-after", b"1"),
                (b"connection", b"close"),
                (b"content-type", b"text/plain; charset=utf-8"),
            ]
            if draining.notify_aggregator:
                headers.append((NOT_PROCESSED, b"1"))
            return Response(503, headers, b"apiserver is shutting down, please try again later.\n")
        if is_long_running(request.info):
            return await handler(request)
        draining.enter()
        try:
            return await handler(request)
        finally:
            draining.leave()

    return drain


def _is_probe(path: str) -> bool:
    return path.startswith(("/readyz", "/livez", "/healthz", "/metrics"))
