"""Refuses new requests while the server stops, and tells when the last one has been answered.

Upstream: server/filters/waitgroup.go, with_retry_after.go: 503 with `Retry-After` and `Connection: close`. A service behind a front says
besides that nothing was done, so that the front asks another replica (proxy/balanced.py), whatever the request was.
"""

from __future__ import annotations

import asyncio

from tetrapod.generic.among_services.names import UNTOUCHED
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.machinery.requestinfo import is_long_running


class Draining:
    """Counts the short requests in flight. `begin` makes new ones be refused; `wait` returns when none is left."""

    def __init__(self, *, tells_front: bool = False) -> None:
        self.tells_front = tells_front
        self.active = False
        self.in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self) -> None:
        """From now on new requests are refused, but for probes."""
        self.active = True

    async def wait(self, timeout: float) -> None:
        """Returns once no short request is in flight, or after `timeout` seconds."""
        try:
            await asyncio.wait_for(self._idle.wait(), timeout)
        except TimeoutError:
            return

    def enter(self) -> None:
        """A short request begins."""
        self.in_flight += 1
        self._idle.clear()

    def leave(self) -> None:
        """A short request has been answered."""
        self.in_flight -= 1
        if not self.in_flight:
            self._idle.set()


def with_draining(handler: Handler, draining: Draining) -> Handler:
    """Counts, and refuses with a 503 while `draining` is active."""

    async def drain(request: Request) -> Response:
        if draining.active and not _is_probe(request.path):
            headers = [(b"retry-after", b"1"), (b"connection", b"close"), (b"content-type", b"text/plain; charset=utf-8")]
            if draining.tells_front:
                headers.append((UNTOUCHED, b"1"))
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
