"""Rejects new requests while the server shuts down, waits for those in flight, and ends watches.

The response is a 503 with `Retry-After` and `Connection: close`, or a 429 with --shutdown-send-retry-after. A service
behind a front proxy adds a header, which says that the request was not processed. The front proxy can then send even a
write to another replica (proxy/balanced_pool.py).
Upstream: staging/src/k8s.io/apiserver/pkg/server/filters/waitgroup.go, with_retry_after.go, watch_termination.go
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from tetrapod.generic.http.headers import JSON_TYPE, NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.peers import NOT_PROCESSED
from tetrapod.generic.http.request import Handler, HeaderList, Request, Response, StreamResponse, StreamWriter
from tetrapod.machinery.requestinfo import is_long_running

_Run: TypeAlias = Callable[[StreamWriter], Awaitable[None]]
_SLOWEST: Final = 200.0
"""Watches that are ended each second, if the grace period allows fewer. The number is upstream's."""
_UNAVAILABLE: Final = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"apiserver is shutting down",'
    b'"reason":"ServiceUnavailable","code":503}\n\n'
)
_TOO_MANY: Final = b"The apiserver is shutting down, please try again later.\n"


class Draining:
    """The number of requests in flight, without long-running ones, and whether new requests are rejected.

    Args:
        behind_aggregator: whether rejections carry the header that tells the aggregator that the request was not
            processed.
        send_retry_after: whether rejections are a 429 instead of a 503, because the server goes on listening until the
            requests in flight have ended (--shutdown-send-retry-after).
        watch_grace_period: the seconds that `end_watches` takes at most (--shutdown-watch-termination-grace-period); 0
            if it ends none.

    Attributes:
        active: whether new requests are rejected.
        in_flight: the number of requests in flight.
    """

    def __init__(
        self, *, behind_aggregator: bool = False, send_retry_after: bool = False, watch_grace_period: float = 0.0
    ) -> None:
        self.behind_aggregator = behind_aggregator
        self.send_retry_after = send_retry_after
        self.watch_grace_period = watch_grace_period
        self._watches: set[asyncio.Timeout] = set()
        self._no_watches = asyncio.Event()
        self._no_watches.set()
        self.active = False
        self.in_flight = 0
        self._idle = asyncio.Event()  # only for `wait`: to clear it for each request would cost more than the count

    def begin(self) -> None:
        """Reject new requests from now on, except for health checks and /metrics."""
        self.active = True

    async def wait(self, timeout: float) -> None:
        """Wait until no request is in flight, but at most `timeout` seconds. Both outcomes return normally."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):  # asyncio.wait_for may lose a cancellation before Python 3.12
                while self.in_flight:
                    self._idle.clear()
                    await self._idle.wait()

    def enter(self) -> None:
        """Count a request that starts. `leave` must be called when it ends."""
        self.in_flight += 1

    def leave(self) -> None:
        """Count a request that has ended, and wake `wait` if it was the last one."""
        self.in_flight -= 1
        if not self.in_flight:
            self._idle.set()

    async def end_watches(self) -> None:
        """End the watches one after the other, so that their clients do not all connect to other servers at once.

        Watches that still run after the grace period are left alone.
        Upstream: RunWithContext in genericapiserver.go
        """
        grace_period = self.watch_grace_period
        if not grace_period:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_period):
                loop = asyncio.get_running_loop()
                interval = 1 / max(_SLOWEST, len(self._watches) / grace_period)
                for watch in list(self._watches):
                    if watch in self._watches:
                        watch.reschedule(loop.time())
                        await asyncio.sleep(interval)
                await self._no_watches.wait()

    def endable(self, run: _Run) -> _Run:
        """Return `run`, the function that writes a watch, such that `end_watches` ends it and completes its body."""

        async def run_until_ended(writer: StreamWriter) -> None:
            try:
                async with asyncio.timeout(None) as watch:
                    self._watches.add(watch)
                    self._no_watches.clear()
                    await run(writer)
            except TimeoutError:
                if not watch.expired():
                    raise
            finally:
                self._watches.discard(watch)
                if not self._watches:
                    self._no_watches.set()

        return run_until_ended


def with_draining(handler: Handler, draining: Draining) -> Handler:
    """Return a handler that counts requests in `draining`, and rejects them while it is active, except health checks.

    The server's own clients are not rejected either, so that its hooks can finish. Long-running requests are not
    counted; if a grace period for watches is configured, `draining` can end their streams.
    """

    async def drain(request: Request) -> Response:
        if draining.active and not _is_exempt(request):
            return _rejection(draining)
        if is_long_running(request.info):
            response = await handler(request)
            if draining.watch_grace_period and isinstance(response, StreamResponse) and response.endless:
                response.run = draining.endable(response.run)
            return response
        draining.enter()
        try:
            return await handler(request)
        finally:
            draining.leave()

    return drain


def _is_exempt(request: Request) -> bool:
    if request.path.startswith(("/readyz", "/livez", "/healthz", "/metrics")):
        return True
    return any(name == b"user-agent" and value.startswith(b"kube-apiserver/") for name, value in request.headers)


def _rejection(draining: Draining) -> Response:
    headers: HeaderList = [(b"connection", b"close"), NOSNIFF]
    if draining.behind_aggregator:
        headers.append((NOT_PROCESSED, b"1"))
    if draining.send_retry_after:
        headers += [(b"retry-after", b"5"), TEXT_TYPE]
        return Response(429, headers, _TOO_MANY)
    headers += [(b"retry-after", b"1"), JSON_TYPE]
    return Response(503, headers, _UNAVAILABLE)
