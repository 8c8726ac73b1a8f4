"""The two IP families. The proxy has a set of rules, and a loop that writes it, for each of them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from enum import Enum
from typing import Final

from tetrapod.machinery.golang.ip_addresses import Address, Network, parse_cidr_sloppy, parse_sloppy, unmapped


class Family(Enum):
    """An IP family, with the name that it has in the API and in metrics."""

    IPV4 = "IPv4"
    IPV6 = "IPv6"

    @property
    def other(self) -> Family:
        """The other family."""
        return Family.IPV6 if self is Family.IPV4 else Family.IPV4

    @property
    def everything(self) -> str:
        """The CIDR with all addresses of the family."""
        return "0.0.0.0/0" if self is Family.IPV4 else "::/0"


LOOPBACK: Final[dict[Family, Network]] = {
    Family.IPV4: ipaddress.ip_network("127.0.0.0/8"),
    Family.IPV6: ipaddress.ip_network("::1/128"),
}


def parse_address(text: str) -> Address | None:
    """Return an address, or None if the text is not one. An IPv4-mapped IPv6 address is an IPv4 address, as in Go."""
    address = parse_sloppy(text)
    return None if address is None else unmapped(address)


def parse_network(text: str) -> Network | None:
    """Return the network of a CIDR, or None if the text is not a CIDR."""
    parsed = parse_cidr_sloppy(text)
    return None if parsed is None else parsed[1]


def family_of(value: Address | Network) -> Family:
    """Return the family of an address or a network."""
    return Family.IPV4 if value.version == 4 else Family.IPV6


def addresses_of(family: Family, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses of a family in their canonical form. Texts that are not addresses are skipped."""
    parsed = (parse_address(text) for text in texts)
    return tuple(str(address) for address in parsed if address is not None and family_of(address) is family)


def networks_of(family: Family, texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks of a family. Texts that are not CIDRs are skipped. Spaces around a CIDR are allowed."""
    parsed = (parse_network(text.strip()) for text in texts)
    return tuple(network for network in parsed if network is not None and family_of(network) is family)
