"""The names of iptables' chains, and the rules in the kernel's own chains that jump to them.

Upstream: pkg/proxy/iptables/proxier.go
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final, NamedTuple

SERVICES: Final = "KUBE-SERVICES"
EXTERNAL_SERVICES: Final = "KUBE-EXTERNAL-SERVICES"
NODE_PORTS: Final = "KUBE-NODEPORTS"
POSTROUTING: Final = "KUBE-POSTROUTING"
MARK_MASQUERADE: Final = "KUBE-MARK-MASQ"
FORWARD: Final = "KUBE-FORWARD"
PROXY_FIREWALL: Final = "KUBE-PROXY-FIREWALL"
CANARY: Final = "KUBE-PROXY-CANARY"
KUBELET_FIREWALL: Final = "KUBE-FIREWALL"
"""A chain that the kubelet creates too, with the same rule."""

FILTER_CHAINS: Final = (SERVICES, EXTERNAL_SERVICES, FORWARD, NODE_PORTS, PROXY_FIREWALL)
NAT_CHAINS: Final = (SERVICES, NODE_PORTS, POSTROUTING, MARK_MASQUERADE)
"""The chains that every write empties and fills again."""

_CLUSTER: Final = "KUBE-SVC-"
_LOCAL: Final = "KUBE-SVL-"
_FIREWALL: Final = "KUBE-FW-"
_EXTERNAL: Final = "KUBE-EXT-"
_ENDPOINT: Final = "KUBE-SEP-"
_OWN_PREFIXES: Final = (_CLUSTER, _LOCAL, _ENDPOINT, _FIREWALL, _EXTERNAL)
_HASH_LENGTH: Final = 16
"""A name of a chain has at most 28 characters."""


class Jump(NamedTuple):
    """A rule in a chain of the kernel that jumps to one of ours.

    Attributes:
        table: the table.
        target: our chain.
        source: the chain of the kernel.
        comment: the comment; "" for none.
        new_only: whether it only matches the first packet of a connection.
    """

    table: str
    target: str
    source: str
    comment: str
    new_only: bool = False

    def arguments(self) -> list[str]:
        """Return the rule as arguments of iptables, without the chain."""
        state = ["-m", "conntrack", "--ctstate", "NEW"] if self.new_only else []
        comment = ["-m", "comment", "--comment", self.comment] if self.comment else []
        return [*state, *comment, "-j", self.target]


JUMPS: Final = (
    Jump("filter", EXTERNAL_SERVICES, "INPUT", "kubernetes externally-visible service portals", True),
    Jump("filter", EXTERNAL_SERVICES, "FORWARD", "kubernetes externally-visible service portals", True),
    Jump("filter", NODE_PORTS, "INPUT", "kubernetes health check service ports"),
    Jump("filter", SERVICES, "FORWARD", "kubernetes service portals", True),
    Jump("filter", SERVICES, "OUTPUT", "kubernetes service portals", True),
    Jump("filter", FORWARD, "FORWARD", "kubernetes forwarding rules"),
    Jump("filter", PROXY_FIREWALL, "INPUT", "kubernetes load balancer firewall", True),
    Jump("filter", PROXY_FIREWALL, "OUTPUT", "kubernetes load balancer firewall", True),
    Jump("filter", PROXY_FIREWALL, "FORWARD", "kubernetes load balancer firewall", True),
    Jump("nat", SERVICES, "OUTPUT", "kubernetes service portals"),
    Jump("nat", SERVICES, "PREROUTING", "kubernetes service portals"),
    Jump("nat", POSTROUTING, "POSTROUTING", "kubernetes postrouting rules"),
)
KUBELET_JUMPS: Final = (
    Jump("filter", KUBELET_FIREWALL, "INPUT", ""),
    Jump("filter", KUBELET_FIREWALL, "OUTPUT", ""),
)
"""Rules that the kubelet writes too. They are created at the start, and never removed."""


class PortChains(NamedTuple):
    """The names of the chains of a port of a Service.

    Attributes:
        cluster: balances over the endpoints for the traffic policy Cluster.
        local: balances over the endpoints for the traffic policy Local.
        external: the entry for traffic from outside.
        firewall: the entry for traffic of a load balancer with source ranges.
    """

    cluster: str
    local: str
    external: str
    firewall: str


def port_chains(port: str, protocol: str) -> PortChains:
    """Return the names of the chains of a port.

    Args:
        port: the port, as `namespace/name:port`.
        protocol: its protocol in lower case.
    """
    digest = _hash(port + protocol)
    return PortChains(_CLUSTER + digest, _LOCAL + digest, _EXTERNAL + digest, _FIREWALL + digest)


def endpoint_chain(port: str, protocol: str, endpoint: str) -> str:
    """Return the name of the chain of an endpoint of a port.

    Args:
        port: the port, as `namespace/name:port`.
        protocol: its protocol in lower case.
        endpoint: the endpoint, as `address:port`.
    """
    return _ENDPOINT + _hash(port + protocol + endpoint)


def belongs_to_port(chain: str) -> bool:
    """Return whether a chain is one of a port or of an endpoint, by its name."""
    return chain.startswith(_OWN_PREFIXES)


def _hash(text: str) -> str:
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode()[:_HASH_LENGTH]
