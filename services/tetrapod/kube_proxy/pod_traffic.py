"""How rules recognize traffic of pods on this node (--detect-local-mode).

Upstream: pkg/proxy/util/localdetector.go; cmd/kube-proxy/app/server_linux.go, getLocalDetectors
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tetrapod.kube_proxy.families import Family, networks_of

CLUSTER_CIDR: Final = "ClusterCIDR"
NODE_CIDR: Final = "NodeCIDR"
BRIDGE_INTERFACE: Final = "BridgeInterface"
INTERFACE_NAME_PREFIX: Final = "InterfaceNamePrefix"
LOCAL_MODES: Final = (CLUSTER_CIDR, NODE_CIDR, BRIDGE_INTERFACE, INTERFACE_NAME_PREFIX)


@dataclass(frozen=True, slots=True)
class PodTraffic:
    """A match of traffic from pods.

    Attributes:
        matches: the match of iptables, such as `-s 10.0.0.0/8`; "" if such traffic cannot be recognized.
    """

    matches: str = ""

    @property
    def differs(self) -> str:
        """The match of all other traffic."""
        return f"! {self.matches}"


def pod_traffic(
    family: Family, mode: str, *, cidrs: Sequence[str] = (), bridge: str = "", interface_prefix: str = ""
) -> PodTraffic:
    """Return the match for a family.

    Args:
        family: the family.
        mode: one of LOCAL_MODES.
        cidrs: the addresses of pods, of the cluster or the node.
        bridge: the interface of BridgeInterface.
        interface_prefix: the beginning of the interfaces' names of InterfaceNamePrefix.
    """
    if mode in (CLUSTER_CIDR, NODE_CIDR):
        networks = networks_of(family, cidrs)
        return PodTraffic(f"-s {networks[0]}") if networks else PodTraffic()
    return PodTraffic(f"-i {bridge}" if mode == BRIDGE_INTERFACE else f"-i {interface_prefix}+")
