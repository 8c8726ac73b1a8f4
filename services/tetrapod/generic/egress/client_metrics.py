"""The metrics of konnectivity's client: packets, errors of streams, failed dials, and connections by their state.

Upstream: sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client/metrics
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.rpc import Code

_PREFIX: Final = "konnectivity_network_proxy_client_"
PACKETS: Final = Counter(
    f"{_PREFIX}stream_packets_total",
    "Count of packets processed, by segment and packet type (example: from_client, DIAL_REQ)",
    ("segment", "packet_type"),
)
STREAM_ERRORS: Final = Counter(
    f"{_PREFIX}stream_errors_total",
    "Count of gRPC stream errors, by segment, grpc Code, packet type. "
    "(example: from_agent, Code.Unavailable, DIAL_RSP)",
    ("segment", "code", "packet_type"),
)
DIAL_FAILURES: Final = Counter(
    f"{_PREFIX}dial_failure_total",
    "Number of dial failures observed, by reason (example: remote endpoint error)",
    ("reason",),
)
CONNECTIONS: Final = Gauge(
    f"{_PREFIX}client_connections", "Number of open client connections, by status (Example: dialing)", ("status",)
)


def count_sent(packet_type: str) -> None:
    """Count a packet that was sent to the proxy server. `packet_type` is the name of its type, such as DATA."""
    PACKETS.add(("from_client", packet_type))


def count_received(packet_type: str) -> None:
    """Count a packet that was received from the proxy server. `packet_type` is the name of its type, such as DATA."""
    PACKETS.add(("to_client", packet_type))


def count_stream_error(code: Code) -> None:
    """Count an error of a stream that ended while a packet was awaited."""
    STREAM_ERRORS.add(("to_client", code.name.title().replace("_", ""), "Unknown"))


class ConnectionState:
    """The state of one connection in the metric of connections, from its creation to `end`."""

    def __init__(self) -> None:
        self._status = "created"
        CONNECTIONS.add((self._status,))

    def change(self, status: str) -> None:
        """Change the status, unless the connection has ended: "created", "dialing" or "ok"."""
        if self._status:
            CONNECTIONS.add((self._status,), -1)
            CONNECTIONS.add((status,))
            self._status = status

    def end(self) -> None:
        """Remove the connection from the metric. Do nothing if it has been removed."""
        if self._status:
            CONNECTIONS.add((self._status,), -1)
            self._status = ""
