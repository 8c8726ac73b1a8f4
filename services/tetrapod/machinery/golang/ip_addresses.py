"""IP addresses and CIDRs as Go parses them.

`parse_strict` parses as net/netip does. The sloppy parsers follow k8s.io/utils/net and allow leading zeros.

Parsed addresses are kept, because each update of an EndpointSlice validates all of its addresses again, several times
each. Parsing takes 3 µs.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TypeAlias

from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.golang.quoting import go_quote

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_quad = re.compile(r"(^|:)([0-9]{1,20}(?:\.[0-9]{1,20}){3})$").search


def join_host_port(host: str, port: object) -> str:
    """Return `host:port`, with brackets around an IPv6 address. Upstream: Go's net.JoinHostPort."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@bounded(count=8192, size=2 << 20, largest=512)
def parse_sloppy(value: str) -> Address | None:
    """Parse an address as Go did before 1.17, or return None if the text is not an address.

    Numbers with leading zeros are decimal. IPv4-mapped IPv6 addresses stay IPv6.
    """
    if not value.isascii() or "%" in value:
        return None
    if quad := _quad(value):
        numbers = ".".join(str(int(part)) for part in quad[2].split("."))
        value = value[: quad.start(2)] + numbers
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


@bounded(count=8192, size=2 << 20, largest=512)
def parse_strict(value: str) -> Address | None:
    """Parse an address as Go's netip does, or return None if the text is not an address.

    Leading zeros and zones are not allowed.
    """
    if not value.isascii() or "%" in value:
        return None
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None


def parse_cidr_sloppy(value: str) -> tuple[Address, Network] | None:
    """Return the address before the slash and the network of a CIDR, or None if the text is not a CIDR.

    The address may have bits set beyond the prefix length. Leading zeros are allowed, in the prefix length too.
    """
    text, slash, length = value.partition("/")
    address = parse_sloppy(text)
    if not slash or address is None or not (length.isascii() and length.isdigit()) or len(length) > 5:
        return None
    if int(length) > address.max_prefixlen:
        return None
    return address, ipaddress.ip_network((address, int(length)), strict=False)


def unmapped(address: Address) -> Address:
    """Return the IPv4 address of an IPv4-mapped IPv6 address, and other addresses unchanged.

    Go's net.IP treats both as the same.
    """
    if isinstance(address, ipaddress.IPv6Address) and (inner := address.ipv4_mapped) is not None:
        return inner
    return address


def address_error(text: str) -> str:
    """Return Go's error text for a text that is not an IP address, or "" if it is one.

    Upstream: Go's net/netip, ParseAddr.
    """

    def error_text(message: str, at: str = "") -> str:
        return f"ParseAddr({go_quote(text)}): {message}{f' (at {go_quote(at)})' if at else ''}"

    for char in text:
        if char == ".":
            return _ipv4(text, error_text)
        if char == ":":
            return _ipv6(text, error_text)
        if char == "%":
            return error_text("missing IPv6 address")
    return error_text("unable to parse IP")


def _ipv4(text: str, error_text: object) -> str:
    assert callable(error_text)
    value, fields, digits = 0, 0, 0
    for i, char in enumerate(text):
        if char.isascii() and char.isdigit():
            if digits == 1 and value == 0:
                return str(error_text("IPv4 field has octet with leading zero"))
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                return str(error_text("IPv4 field has value >255"))
        elif char == ".":
            if i == 0 or i == len(text) - 1 or text[i - 1] == ".":
                return str(error_text("IPv4 field must have at least one digit", text[i:]))
            if fields == 3:
                return str(error_text("IPv4 address too long"))
            fields, value, digits = fields + 1, 0, 0
        else:
            return str(error_text("unexpected character", text[i:]))
    return str(error_text("IPv4 address too short")) if fields < 3 else ""


def _ipv6(text: str, error_text: object) -> str:
    assert callable(error_text)
    host, percent, zone = text.partition("%")
    if percent and not zone:
        return str(error_text("zone must be a non-empty string"))
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return str(_ipv6_reason(host, error_text))
    return ""


def _ipv6_reason(text: str, error_text: object) -> str:
    """Return Go's error text for an IPv6 address that Python rejects.

    Args:
        text: the address.
        error_text: a function that returns Go's error text, given a reason and optionally the rest of the address.
    """
    assert callable(error_text)
    rest, groups, ellipsis = text, 0, -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return ""
    while groups < 8:
        digits = len(rest) - len(rest.lstrip("0123456789abcdefABCDEF"))
        if digits == 0:
            return str(error_text("each colon-separated field must have at least one digit", rest))
        if digits > 4:
            return str(error_text("each group must have 4 or less digits", rest))
        if rest[digits : digits + 1] == ".":
            return str(error_text("embedded IPv4 address must replace the final 2 fields of the address", rest))
        groups, rest = groups + 1, rest[digits:]
        if not rest:
            break
        if rest[0] != ":":
            return str(error_text("unexpected character, want colon", rest))
        if len(rest) == 1:
            return str(error_text("colon must be followed by more characters", rest))
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                return str(error_text("multiple :: in address", rest))
            ellipsis, rest = groups, rest[1:]
            if not rest:
                break
    if rest:
        return str(error_text("trailing garbage after address", rest))
    return (
        str(error_text("address string too short"))
        if groups < 8 and ellipsis < 0
        else str(error_text("the :: must expand to at least one field of zeros"))
    )
