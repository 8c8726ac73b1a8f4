"""The addresses of this node at which it accepts traffic to node ports (--nodeport-addresses).

Upstream: pkg/proxy/util/nodeport_addresses.go; cmd/kube-proxy/app/server.go, expandNodePortAddressKeywords
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tetrapod.kube_proxy.families import LOOPBACK, Family, networks_of
from tetrapod.machinery.golang.ip_addresses import Address, Network

PRIMARY: Final = "primary"
LOCALHOST: Final = "localhost"
ALL: Final = "all"
KEYWORDS: Final = (PRIMARY, LOCALHOST, ALL)


class NodePortAddresses:
    """The networks of one family to which the addresses for node ports belong.

    Args:
        family: the family.
        cidrs: CIDRs of both families. Without one of this family, all addresses are accepted.
    """

    def __init__(self, family: Family, cidrs: Sequence[str]) -> None:
        networks = networks_of(family, cidrs) or networks_of(family, [family.everything])
        self.matches_all = any(network.prefixlen == 0 for network in networks)
        self._networks: tuple[Network, ...] = networks
        self.contains_loopback = family is Family.IPV4 and any(
            network.network_address.is_loopback or LOOPBACK[family].network_address in network for network in networks
        )

    def choose(self, addresses: Iterable[Address]) -> list[Address]:
        """Return those of the addresses that belong to the networks, without repetitions."""
        return list(dict.fromkeys(a for a in addresses if any(a in network for network in self._networks)))


def expand(entries: Iterable[str], node_addresses: Mapping[Family, Address]) -> tuple[str, ...]:
    """Return --nodeport-addresses with CIDRs in place of the keywords.

    Args:
        entries: CIDRs and keywords.
        node_addresses: the addresses of this node. A loopback address means that the real one is unknown.
    """
    expanded: list[str] = []
    for entry in entries:
        if entry == PRIMARY:
            known = (node_addresses[family] for family in Family)
            expanded += [f"{address}/{address.max_prefixlen}" for address in known if not address.is_loopback]
        elif entry == LOCALHOST:
            expanded += [str(network) for network in LOOPBACK.values()]
        elif entry == ALL:
            expanded += [family.everything for family in Family]
        else:
            expanded.append(entry)
    return tuple(expanded)
