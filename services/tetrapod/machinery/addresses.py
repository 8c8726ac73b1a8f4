"""Validation of IP addresses and CIDRs: which notations are valid, canonical, or accepted only in existing objects.

Strategies and validators call it.

Upstream: k8s.io/apimachinery/pkg/util/validation/ip.go and k8s.io/utils/net.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.golang.ip_addresses import parse_cidr_sloppy, parse_sloppy, parse_strict, unmapped
from tetrapod.machinery.golang.quoting import go_quote

_BAD_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def is_ipv6(value: str) -> bool:
    """Return whether a text is an IPv6 address that is not IPv4-mapped. Leading zeros are allowed."""
    address = parse_sloppy(value)
    return address is not None and unmapped(address).version == 6


def is_ipv4(value: str) -> bool:
    """Return whether a text is an IPv4 address, or an IPv4-mapped IPv6 address. Leading zeros are allowed."""
    address = parse_sloppy(value)
    return address is not None and unmapped(address).version == 4


def _strict_ip_errors(value: str) -> list[str]:
    if parse_sloppy(value) is None:
        return [_BAD_IP]
    strict = parse_strict(value)
    if strict is None:
        return ["must not have leading 0s"]
    return ["must not be an IPv4-mapped IPv6 address"] if unmapped(strict) is not strict else []


def is_valid_ip(value: str) -> list[str]:
    """Return the error messages for a text that is not an IP address in canonical form, or [] if it is one.

    New fields require the canonical form.
    """
    if errors := _strict_ip_errors(value):
        return errors
    canonical = str(parse_strict(value))
    return [] if canonical == value else [f"must be in canonical form ({go_quote(canonical)})"]


def is_valid_ip_for_legacy_field(value: str, old_values: list[str] | None = None, *, strict: bool = True) -> list[str]:
    """Return the error messages for the IP address in a field that accepts other forms than the canonical one, or [].

    Earlier releases accepted any form in such a field. Leading zeros and IPv4-mapped addresses are errors now.

    Args:
        value: the address.
        old_values: values of the stored object, which are valid without any check.
        strict: whether forms that only earlier releases accepted are errors.
    """
    if old_values and value in old_values:
        return []
    return _strict_ip_errors(value) if strict else [] if parse_sloppy(value) is not None else [_BAD_IP]


def _strict_cidr_errors(value: str) -> list[str]:
    parsed = parse_cidr_sloppy(value)
    if parsed is None:
        return [_BAD_CIDR]
    text, _, length = value.partition("/")
    strict = parse_strict(text)
    if strict is None or (len(length) > 1 and length.startswith("0")):
        return ["must not have leading 0s in IP or prefix length"]
    if unmapped(strict) is not strict:
        return ["must not have an IPv4-mapped IPv6 address"]
    address, network = parsed
    return ["must not have bits set beyond the prefix length"] if address != network.network_address else []


def is_valid_cidr(value: str) -> list[str]:
    """Return the error messages for a text that is not a CIDR in canonical form, or [] if it is one.

    New fields require the canonical form.
    """
    if errors := _strict_cidr_errors(value):
        return errors
    parsed = parse_cidr_sloppy(value)
    canonical = str(parsed[1]) if parsed else value
    return [] if canonical == value else [f"must be in canonical form ({go_quote(canonical)})"]


def is_valid_cidr_for_legacy_field(
    value: str, old_values: list[str] | None = None, *, strict: bool = True
) -> list[str]:
    """Return the error messages for the CIDR in a field that accepts other forms than the canonical one, or [].

    Earlier releases accepted any form in such a field. Leading zeros, IPv4-mapped addresses and bits beyond the prefix
    length are errors now.

    Args:
        value: the CIDR.
        old_values: values of the stored object, which are valid without any check.
        strict: whether forms that only earlier releases accepted are errors.
    """
    if old_values and value in old_values:
        return []
    return _strict_cidr_errors(value) if strict else [] if parse_cidr_sloppy(value) is not None else [_BAD_CIDR]


def ip_warnings(path: str, value: str) -> list[str]:
    """Return warnings for an IP address in a notation that is discouraged, or [] for other texts.

    The notations are leading zeros, IPv4-mapped addresses and IPv6 that is not canonical. A text that is not an address
    has no warning, because validation rejects it.

    Args:
        path: the path of the field, with which each warning starts.
    """
    sloppy = parse_sloppy(value)
    if sloppy is None:
        return []
    strict = parse_strict(value)
    if strict is None or unmapped(strict) is not strict:
        suggestion = go_quote(str(unmapped(sloppy)))
        return [f"{path}: non-standard IP address {go_quote(value)} is invalid: use {suggestion}"]
    if strict.version == 6 and str(strict) != value:
        return [
            f"{path}: IPv6 address {go_quote(value)} should be in RFC 5952 canonical format ({go_quote(str(strict))})"
        ]
    return []


def cidr_warnings(path: str, value: str) -> list[str]:
    """Return warnings for a CIDR in a notation that is discouraged, or [] for other texts.

    Such a CIDR has bits set beyond the prefix length, leading zeros, an IPv4-mapped address or IPv6 that is not
    canonical. A text that is not a CIDR has no warning, because validation rejects it.

    Args:
        path: the path of the field, with which each warning starts.
    """
    parsed = parse_cidr_sloppy(value)
    if parsed is None:
        return []
    address, network = parsed
    shown, net = go_quote(value), go_quote(str(network))
    warnings = []
    if address != network.network_address:
        single = go_quote(f"{address}/{address.max_prefixlen}")
        warnings.append(f"{path}: CIDR value {shown} is ambiguous in this context (should be {net} or {single}?)")
    text, _, length = value.partition("/")
    strict = parse_strict(text)
    if strict is None or unmapped(strict) is not strict or (len(length) > 1 and length.startswith("0")):
        warnings.append(
            f"{path}: non-standard CIDR value {shown} will be considered invalid in a future Kubernetes release: "
            f"use {net}"
        )
    if not warnings and address.version == 6 and str(network) != value:
        warnings.append(f"{path}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({net})")
    return warnings
