"""Checks of single values by their form, as complaints about a field; the texts are those of machinery/names.py."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from tetrapod.machinery import field, names
from tetrapod.machinery.addresses import is_ipv6, is_valid_cidr_for_legacy_field, is_valid_ip_for_legacy_field, parse_sloppy, unmapped
from tetrapod.machinery.field import FieldError

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


def complaints(check: Callable[[str], list[str]], value: str, path: str) -> list[FieldError]:
    return [field.invalid(path, value, text) for text in check(value)]


def dns_label(value: str, path: str) -> list[FieldError]:
    return complaints(names.is_dns1123_label, value, path)


def dns_subdomain(value: str, path: str) -> list[FieldError]:
    return complaints(names.is_dns1123_subdomain, value, path)


def qualified_name(value: str, path: str) -> list[FieldError]:
    return complaints(names.is_qualified_name, value, path)


def port_number(value: int, path: str) -> list[FieldError]:
    return [field.invalid(path, value, text) for text in names.is_valid_port_number(value)]


def port_number_or_name(value: Any, path: str) -> list[FieldError]:
    if isinstance(value, str):
        return complaints(names.is_valid_port_name, value, path)
    return port_number(value or 0, path)


def in_range(value: int, low: int, high: int, path: str) -> list[FieldError]:
    return [field.invalid(path, value, text) for text in names.is_in_range(value, low, high)]


def user_id(value: int, path: str) -> list[FieldError]:
    """Of a user or a group."""
    return [field.invalid(path, value, text) for text in names.is_valid_user_id(value)]


def not_negative(value: int | None, path: str) -> list[FieldError]:
    return [field.invalid(path, value, NOT_NEGATIVE)] if (value or 0) < 0 else []


def one_of(value: str | None, allowed: Collection[str], path: str) -> list[FieldError]:
    """A value that must be given and known. `allowed` is printed sorted where it is a set, else as it stands."""
    if not value:
        return [field.required(path)]
    return known(value, allowed, path)


def known(value: str, allowed: Collection[str], path: str) -> list[FieldError]:
    """A value that must be one of `allowed`, the empty text being as wrong as any other."""
    return [] if value in allowed else [field.not_supported(path, value, allowed)]


def immutable(new: Any, old: Any, path: str) -> list[FieldError]:
    return [] if new == old else [field.invalid(path, new, IMMUTABLE)]


def fixed(new: Any, old: Any, path: str) -> list[FieldError]:
    """As `immutable`, where upstream declares it on the field: the value is not told."""
    return [] if (new or None) == (old or None) else [field.invalid(path, None, IMMUTABLE)]


def address(value: str, path: str, known_before: list[str] | None = None) -> list[FieldError]:
    """An address in a field that is older than strict rules: what the object had before is let through."""
    return [field.invalid(path, value, text) for text in is_valid_ip_for_legacy_field(value, known_before)]


def network(value: str, path: str, known_before: list[str] | None = None) -> list[FieldError]:
    return [field.invalid(path, value, text) for text in is_valid_cidr_for_legacy_field(value, known_before)]


def not_special_address(value: str, path: str) -> list[FieldError]:
    """Addresses that no endpoint can have (upstream: ValidateEndpointIP, ValidateNonSpecialIP)."""
    parsed = parse_sloppy(value)
    if parsed is None:
        return [field.invalid(path, value, "must be a valid IP address")]
    found = unmapped(parsed)
    texts = []
    if found.is_unspecified:
        texts.append(f"may not be unspecified ({value})")
    if found.is_loopback:
        texts.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        texts.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if (found.version == 4 and found.packed[:3] == b"\xe0\x00\x00") or (
        found.version == 6 and found.packed[0] == 0xFF and found.packed[1] & 0xF == 2
    ):
        texts.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return [field.invalid(path, value, text) for text in texts]


def families(addresses: list[str]) -> tuple[bool, str]:
    """Whether both families are among them, and what is wrong with the first that is no address."""
    found = set()
    for i, value in enumerate(addresses):
        if parse_sloppy(value) is None:
            return False, f"invalid IP[{i}]: {value}"
        found.add(is_ipv6(value))
    return len(found) == 2, ""
