"""The metrics of connections by way of a proxy, and the function that dials and counts.

Upstream: k8s.io/apiserver/pkg/server/egressselector/metrics
"""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from tetrapod.generic.dialing import DialError
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.observability.tracing.spans import start
from tetrapod.machinery.golang.ip_addresses import join_host_port

_C = TypeVar("_C")
_LABELS: Final = ("protocol", "transport")
STARTS: Final = Counter(
    "apiserver_egress_dialer_dial_start_total",
    "Dial starts, labeled by the protocol (http-connect or grpc) and transport (tcp or uds).",
    _LABELS,
)
DURATIONS: Final = Histogram(
    "apiserver_egress_dialer_dial_duration_seconds",
    "Dial latency histogram in seconds, labeled by the protocol (http-connect or grpc), transport (tcp or uds)",
    _LABELS,
    (0.005, 0.025, 0.1, 0.5, 2.5, 12.5),
)
FAILURES: Final = Counter(
    "apiserver_egress_dialer_dial_failure_count",
    "Dial failure count, labeled by the protocol (http-connect or grpc), transport (tcp or uds), and stage (connect or "
    "proxy). The stage indicates at which stage the dial failed",
    (*_LABELS, "stage"),
)


class MeasuredDialer(Generic[_C]):
    """A dialer in two stages, whose calls are counted: connect to the proxy, then have it connect to the server.

    Args:
        labels: the protocol and the transport to the proxy, such as ("http_connect", "uds").
        connect: connects to the proxy.
        request: has the proxy connect to host:port, and returns the socket. If it fails it closes the connection.
    """

    def __init__(
        self,
        labels: tuple[str, str],
        connect: Callable[[], Awaitable[_C]],
        request: Callable[[_C, str], Awaitable[socket.socket]],
    ) -> None:
        self._labels, self._connect, self._request = labels, connect, request

    async def __call__(self, host: str, port: int) -> socket.socket:
        """Return a socket that is connected to a server by way of the proxy. The caller closes it.

        Raises:
            DialError: the proxy or the server cannot be reached.
        """
        protocol, transport = self._labels
        began, stage = time.perf_counter(), "connect"
        STARTS.add(self._labels)
        with start(f"Proxy via {protocol} protocol over {transport}"):
            try:
                connection = await self._connect()
                stage = "proxy"
                connected = await self._request(connection, join_host_port(host, port))
            except DialError:
                FAILURES.add((*self._labels, stage))
                raise
        DURATIONS.observe(self._labels, time.perf_counter() - began)
        return connected
