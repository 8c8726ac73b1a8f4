"""Counters of packets in the kernel (nfacct), which rules count in and metrics show.

Upstream: pkg/proxy/util/nfacct
"""

from __future__ import annotations

import errno
import logging
import struct
from typing import Final

from tetrapod.generic.metrics.counters import CounterFunction
from tetrapod.kube_proxy.netlink import Netfilter, attribute, attributes

log = logging.getLogger(__name__)

INVALID: Final = "ct_state_invalid_dropped_pkts"
LOCALHOST: Final = "localhost_nps_accepted_pkts"
COUNTERS: Final = (INVALID, LOCALHOST)
_SUBSYSTEM: Final = 7
_NEW, _GET = 0, 1
_NAME, _PACKETS = 1, 2


class PacketCounters:
    """The counters of this network namespace.

    Attributes:
        supported: whether the kernel has such counters.
    """

    def __init__(self) -> None:
        self._socket: Netfilter | None = None
        try:
            self._socket = Netfilter(_SUBSYSTEM)
            self.packets("IMayExist")
            self.supported = True
        except OSError as error:
            log.error("Failed to create nfacct runner, nfacct based metrics won't be available: %s", error)
            self.supported = False

    def ensure(self, name: str) -> bool:
        """Create a counter if it does not exist, and return whether it exists now."""
        if not self.supported or self._socket is None:
            return False
        try:
            if self.packets(name) is None:
                self._socket.execute(_NEW, attribute(_NAME, name.encode() + b"\0"), create=True)
        except OSError as error:
            log.error(
                "Failed to create nfacct counter; the corresponding metric will not be updated: %s: %s", name, error
            )
            return False
        return True

    def packets(self, name: str) -> int | None:
        """Return the number of packets that a counter has counted, or None if it does not exist.

        Raises:
            OSError: the kernel has no counters, or does not show them to this process.
        """
        if self._socket is None:
            return None
        try:
            (answer,) = self._socket.execute(_GET, attribute(_NAME, name.encode() + b"\0"))
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            raise
        (count,) = struct.unpack(">Q", attributes(answer)[_PACKETS])
        return int(count)

    def register(self) -> None:
        """Add the metrics that show the counters."""
        for name, metric, text in (
            (
                INVALID,
                "kubeproxy_iptables_ct_state_invalid_dropped_packets_total",
                "packets dropped by iptables to work around conntrack problems",
            ),
            (
                LOCALHOST,
                "kubeproxy_iptables_localhost_nodeports_accepted_packets_total",
                "Number of packets accepted on nodeports of loopback interface",
            ),
        ):
            CounterFunction(metric, text, (), lambda name=name: self._row(name))  # type: ignore[misc]

    def _row(self, name: str) -> list[tuple[tuple[str, ...], float]]:
        try:
            count = self.packets(name)
        except OSError:
            return []
        return [] if count is None else [((), float(count))]
