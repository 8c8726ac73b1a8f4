"""`Exporter`: sends spans in batches to an OpenTelemetry collector by OTLP over gRPC.

It uses the HTTP/2 client of the etcd backend. OpenTelemetry's own gRPC exporter requires grpcio (12 MB a process, see
CONTRIBUTING.md). Its HTTP exporter requires a second HTTP client and a thread, while upstream's configuration file
names a gRPC target. The messages are OpenTelemetry's (opentelemetry-proto), imported with the first batch. Queue and
batch sizes are those of Go's batch span processor.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from tetrapod.generic.dialing import Dialer
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.observability.tracing.spans import Span
from tetrapod.generic.rpc import Channel, Code, RpcError

log = logging.getLogger(__name__)

_QUEUE, _BATCH = 2048, 512
_SCHEDULE: Final = 5000
_SCHEDULE_VARIABLE: Final = "OTEL_BSP_SCHEDULE_DELAY"
"""OpenTelemetry's variable for the delay of a batch in milliseconds; Go's SDK, and so upstream, reads it too."""
_TIMEOUT: Final = 10.0
_LAST_TIMEOUT: Final = 2.0
_PATH: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_RETRIABLE: Final = frozenset(
    {Code.CANCELLED, Code.DEADLINE_EXCEEDED, Code.ABORTED, Code.OUT_OF_RANGE, Code.UNAVAILABLE, Code.DATA_LOSS}
)
_FIRST_WAIT, _LONGEST_WAIT, _RETRY_SECONDS = 0.5, 5.0, 30.0


class Exporter:
    """A queue of spans and the task that sends them.

    Args:
        endpoint: the gRPC target of the collector; see `channel_to`.
        resource: the attributes service.name and service.instance.id.
        dialer: connects by way of a proxy; None to connect directly.
    """

    def __init__(self, endpoint: str, resource: dict[str, str], dialer: Dialer | None = None) -> None:
        self._channel = channel_to(endpoint, dialer)
        self._endpoint = endpoint
        self._resource = resource
        self._waiting: deque[Span] = deque()
        self._enough = asyncio.Event()
        self._clock = time.time() - time.monotonic()
        delay = os.environ.get(_SCHEDULE_VARIABLE, "")
        self._schedule = (int(delay) if delay.isdigit() else _SCHEDULE) / 1000
        self.dropped = 0

    def add(self, spans: Iterable[Span]) -> None:
        """Queue spans. Those that do not fit into the queue are dropped and counted in `dropped`. Never waits."""
        for span in spans:
            if len(self._waiting) >= _QUEUE:
                self.dropped += 1
            else:
                self._waiting.append(span)
        if len(self._waiting) >= _BATCH:
            self._enough.set()

    def follow(self, lifecycle: Lifecycle) -> None:
        """Register the post-start hook that runs the exporter, and the shutdown hook that closes it."""

        async def start() -> None:
            lifecycle.background("trace exporter", self.run())

        lifecycle.on_start("start-trace-exporter", start)
        lifecycle.on_shutdown("trace exporter", self.close)

    async def run(self) -> None:
        """Send batches until cancelled: every 5 seconds, or when 512 spans are queued. Failures are logged."""
        while True:
            try:
                async with asyncio.timeout(self._schedule):
                    await self._enough.wait()
            except TimeoutError:
                pass
            self._enough.clear()
            while self._waiting:
                await self._export(_RETRY_SECONDS)

    async def _export(self, retry_seconds: float) -> None:
        """Remove one batch from the queue and send it, with retries for `retry_seconds` seconds.

        A failure is logged.
        """
        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        message = await asyncio.to_thread(self._encode, batch)
        wait, until = _FIRST_WAIT, time.monotonic() + retry_seconds
        while True:
            try:
                async with asyncio.timeout(_TIMEOUT):
                    await self._channel.connect()
                await self._channel.unary(_PATH, message, min(_TIMEOUT, retry_seconds))
                return
            except (RpcError, OSError, TimeoutError) as error:
                again = not isinstance(error, RpcError) or error.code in _RETRIABLE
                if not again or time.monotonic() + wait > until:
                    log.warning(
                        "traces export: %d spans could not be sent to %s: %s", len(batch), self._endpoint, error
                    )
                    return
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT)

    def _encode(self, batch: list[Span]) -> bytes:
        from tetrapod.generic.observability.tracing.otlp import encode

        return encode(batch, self._resource, self._clock)

    async def close(self) -> None:
        """Send the queued spans, with at most 2 seconds for each batch, and close the connection.

        Failures to send are logged.
        """
        while self._waiting:
            await self._export(_LAST_TIMEOUT)
        await self._channel.close()


def channel_to(endpoint: str, dialer: Dialer | None = None) -> Channel:
    """Return a channel without TLS to a gRPC target.

    A target is host:port, dns://[authority]/host:port, unix:///path or unix-abstract:///name. The default port is 443.

    Args:
        endpoint: the target.
        dialer: connects by way of a proxy; None to connect directly. A Unix socket is always connected directly.
    """
    if "//" not in endpoint:
        host, _, port = endpoint.rpartition(":")
        if not host or not port.isdigit():
            return Channel(endpoint, 443, dialer=dialer)
        return Channel(host.strip("[]"), int(port), dialer=dialer)
    parts = urlsplit(endpoint)
    if parts.scheme == "dns":
        return channel_to(parts.path.lstrip("/") or parts.netloc, dialer)
    name = parts.netloc + parts.path
    return Channel("localhost", 0, path=f"\0{name.lstrip('/')}" if parts.scheme == "unix-abstract" else name)
