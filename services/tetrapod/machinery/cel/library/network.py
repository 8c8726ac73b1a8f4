"""IP addresses and CIDRs. The error texts are those of Go's net/netip.

Upstream: apiserver/pkg/cel/library/ip.go and cidr.go.
"""

from __future__ import annotations

import ipaddress
from math import ceil
from typing import Any, Final

from tetrapod.machinery.cel import types
from tetrapod.machinery.cel.errors import EvaluationError
from tetrapod.machinery.cel.library.signatures import Functions
from tetrapod.machinery.cel.values import Special, no_such_overload
from tetrapod.machinery.golang.ip_addresses import address_error
from tetrapod.machinery.golang.quoting import go_quote

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class IP(Special):
    """An IP address: the value of `ip('10.0.0.1')`."""

    cel_type = types.opaque("net.IP")

    def __init__(self, address: Address) -> None:
        self.address = address

    def equals(self, other: Any) -> bool:
        return isinstance(other, IP) and self.address == other.address

    def cel_size(self) -> int:
        return self.address.max_prefixlen // 8


class CIDR(Special):
    """A CIDR: the value of `cidr('10.0.0.0/8')`. Its address may have bits set beyond the prefix length."""

    cel_type = types.opaque("net.CIDR")

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def equals(self, other: Any) -> bool:
        return isinstance(other, CIDR) and (self.address, self.bits) == (other.address, other.bits)

    def cel_size(self) -> int:
        return ceil(self.bits / 8)

    @property
    def network(self) -> int:
        """Return the network address, in which all bits beyond the prefix length are 0, as an integer."""
        return self._masked(self.address)

    def _masked(self, address: Address) -> int:
        shift = address.max_prefixlen - self.bits
        return int(address) >> shift << shift

    def contains(self, address: Address) -> bool:
        """Return whether an address is within the network. An address of the other IP family is not."""
        return address.version == self.address.version and self._masked(address) == self.network

    def masked(self) -> CIDR:
        """Return the CIDR of the network address: all bits beyond the prefix length are 0."""
        return CIDR(type(self.address)(self.network), self.bits)


def _address(text: str) -> Address:
    """Parse an IP address. A zone (`%eth0`) is ignored.

    Raises:
        ValueError: the text is invalid; with Go's text.
    """
    message = address_error(text)
    if message:
        raise ValueError(message)
    return ipaddress.ip_address(text.partition("%")[0])


def _parse_ip(text: str) -> IP:
    try:
        address = _address(text)
    except ValueError as error:
        raise EvaluationError(
            f"IP Address {go_quote(text)} parse error during conversion from string: {error}"
        ) from None
    if "%" in text:
        raise EvaluationError(f"IP address {go_quote(text)} with zone value is not allowed")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return IP(address)


def _prefix(text: str) -> tuple[Address, int]:
    """Parse a CIDR into its address and prefix length.

    Raises:
        ValueError: the text is invalid; with Go's text.
    """
    prefix = f"netip.ParsePrefix({go_quote(text)})"
    host, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError(f"{prefix}: no '/'")
    try:
        address = _address(host)
    except ValueError as error:
        raise ValueError(f"{prefix}: {error}") from None
    if "%" in host:
        raise ValueError(f"{prefix}: IPv6 zones cannot be present in a prefix")
    if not (bits.isascii() and bits.isdigit()) or (len(bits) > 1 and bits[0] == "0"):
        raise ValueError(f"{prefix}: bad bits after slash: {go_quote(bits)}")
    if len(bits) > 3 or int(bits) > address.max_prefixlen:
        raise ValueError(f"{prefix}: prefix length out of range")
    return address, int(bits)


def _parse_cidr(text: str) -> CIDR:
    outer = "network address parse error during conversion from string: "
    try:
        address, bits = _prefix(text)
    except ValueError as error:
        raise EvaluationError(f"{outer}{outer}{error}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"{outer}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return CIDR(address, bits)


def _is(parse: Any) -> Any:
    def check(text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return check


def _contains_text(cidr: CIDR, text: str) -> bool:
    """Return whether a CIDR contains the IP address in a text.

    Raises:
        EvaluationError: the text is invalid. As upstream, the message is `no such overload`.
    """
    try:
        return cidr.contains(_parse_ip(text).address)
    except EvaluationError:
        raise no_such_overload() from None


def _contains_cidr(outer: CIDR, inner: CIDR) -> bool:
    return outer.bits <= inner.bits and outer.contains(inner.address)


def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    excluded = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not excluded and str(address) != "255.255.255.255"


def _is_link_local_multicast(ip: IP) -> bool:
    address = ip.address
    if isinstance(address, ipaddress.IPv4Address):
        return int(address) >> 8 == 0xE00000
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 2


FUNCTIONS: Final[Functions] = {
    "ip": [((str,), _parse_ip), ((CIDR,), lambda cidr: IP(cidr.address))],
    "isIP": [((str,), _is(_parse_ip))],
    "ip.isCanonical": [((str,), lambda text: str(_parse_ip(text).address) == text)],
    "family": [((IP,), lambda ip: ip.address.version)],
    "isUnspecified": [((IP,), lambda ip: ip.address.is_unspecified)],
    "isLoopback": [((IP,), lambda ip: ip.address.is_loopback)],
    "isLinkLocalMulticast": [((IP,), _is_link_local_multicast)],
    "isLinkLocalUnicast": [((IP,), lambda ip: ip.address.is_link_local)],
    "isGlobalUnicast": [((IP,), _is_global_unicast)],
    "cidr": [((str,), _parse_cidr)],
    "isCIDR": [((str,), _is(_parse_cidr))],
    "containsIP": [
        ((CIDR, str), _contains_text),
        ((CIDR, IP), lambda cidr, ip: cidr.contains(ip.address)),
    ],
    "containsCIDR": [
        ((CIDR, str), lambda cidr, text: _contains_cidr(cidr, _parse_cidr(text))),
        ((CIDR, CIDR), _contains_cidr),
    ],
    "prefixLength": [((CIDR,), lambda cidr: cidr.bits)],
    "masked": [((CIDR,), CIDR.masked)],
    "string": [((IP,), lambda ip: str(ip.address)), ((CIDR,), lambda cidr: f"{cidr.address}/{cidr.bits}")],
}
