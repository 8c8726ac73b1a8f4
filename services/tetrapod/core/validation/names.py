"""Validation of single values by their format, as field errors. The error texts come from machinery/names.py.

Each function returns the errors, with `path` as their field path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field, names
from tetrapod.machinery.addresses import is_ipv6, is_valid_cidr_for_legacy_field, is_valid_ip_for_legacy_field
from tetrapod.machinery.boundedcache import bounded
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.ip_addresses import parse_sloppy, unmapped
from tetrapod.machinery.names import is_dns1123_subdomain

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"
RELAXED_SERVICE_NAMES: Final = "RelaxedServiceNameValidation"
"""The gate for names of Services that are DNS-1123 labels but not DNS-1035 labels: those with a leading digit."""
_STRICT = "StrictIPCIDRValidation"


def errors_from(check: Callable[[str], list[str]], value: str, path: str) -> list[FieldError]:
    """Return an "Invalid value" error for each text that `check` returns for the value.

    Args:
        check: returns the error texts of the value, [] if it is valid.
        path: the field path of the value, for the errors.
    """
    texts = check(value)
    return [field.invalid(path, value, text) for text in texts] if texts else []


def dns_label(value: str, path: str) -> list[FieldError]:
    """Validate a DNS-1123 label.

    Args:
        path: the field path of the value, for the errors.
    """
    return errors_from(names.is_dns1123_label, value, path)


def dns_subdomain(value: str, path: str) -> list[FieldError]:
    """Validate a DNS-1123 subdomain.

    Args:
        path: the field path of the value, for the errors.
    """
    return errors_from(names.is_dns1123_subdomain, value, path)


def qualified_name(value: str, path: str) -> list[FieldError]:
    """Validate a qualified name: a name of at most 63 characters, optionally after a DNS subdomain and a slash.

    Args:
        path: the field path of the value, for the errors.
    """
    return errors_from(names.is_qualified_name, value, path)


def port_number(value: int, path: str) -> list[FieldError]:
    """Validate a port number (1 to 65535).

    Args:
        path: the field path of the value, for the errors.
    """
    return [field.invalid(path, value, text) for text in names.is_valid_port_number(value)]


def port_number_or_name(value: Any, path: str) -> list[FieldError]:
    """Validate an IntOrString port: a port name if it is a string, else a port number.

    None counts as 0, which is not a valid port number.

    Args:
        path: the field path of the value, for the errors.
    """
    if isinstance(value, str):
        return errors_from(names.is_valid_port_name, value, path)
    return port_number(value or 0, path)


def in_range(value: int, low: int, high: int, path: str) -> list[FieldError]:
    """Return an error unless low <= value <= high.

    Args:
        path: the field path of the value, for the errors.
    """
    return [field.invalid(path, value, text) for text in names.is_in_range(value, low, high)]


def user_id(value: int | None, path: str) -> list[FieldError]:
    """Validate the numeric id of a user or a group: 0 to 2^31 - 1. None is accepted.

    Args:
        path: the field path of the value, for the errors.
    """
    return [] if value is None else [field.invalid(path, value, text) for text in names.is_valid_user_id(value)]


def not_negative(value: int | None, path: str) -> list[FieldError]:
    """Reject a negative number; None is accepted.

    Args:
        path: the field path of the value, for the errors.
    """
    return [field.invalid(path, value, NOT_NEGATIVE)] if (value or 0) < 0 else []


def one_of(value: str | None, allowed: Collection[str], path: str) -> list[FieldError]:
    """Validate a required value that must be one of `allowed`.

    Errors print `allowed` sorted if it is a set, else in its order.

    Args:
        path: the field path of the value, for the errors.
    """
    if not value:
        return [field.required(path)]
    return known(value, allowed, path)


def known(value: str, allowed: Collection[str], path: str, *, typed: bool = True) -> list[FieldError]:
    """Return an "Unsupported value" error unless the value, which may be empty, is one of `allowed`.

    Args:
        path: the field path of the value, for the errors.
        typed: whether the value has a named type in Go (`field.not_supported`).
    """
    return [] if value in allowed else [field.not_supported(path, value, allowed, typed=typed)]


def immutable(new: Any, old: Any, path: str, *, typed: bool = False) -> list[FieldError]:
    """Return an error unless the values are equal (`==`).

    Args:
        path: the field path of the value, for the errors.
        typed: whether a text has a named type or is behind a pointer in Go (`TypedText`).
    """
    if new == old:
        return []
    return [field.invalid(path, field.as_typed(new) if typed else new, IMMUTABLE)]


def fixed(new: Any, old: Any, path: str) -> list[FieldError]:
    """Return an error unless the values are equal; empty values equal unset ones.

    As in upstream's declarative validation, the error does not show the value.

    Args:
        path: the field path of the value, for the errors.
    """
    return [] if (new or None) == (old or None) else [field.invalid(path, None, IMMUTABLE)]


def address(value: str, path: str, stored_values: list[str] | None = None) -> list[FieldError]:
    """Validate an IP address in a field that still accepts stored addresses of older, less strict formats.

    Args:
        path: the field path of the value, for the errors.
        stored_values: the addresses of the stored object, which are accepted as they are.
    """
    texts = is_valid_ip_for_legacy_field(value, stored_values, strict=feature_gates.enabled(_STRICT))
    return [field.invalid(path, value, text) for text in texts]


def network(value: str, path: str, stored_values: list[str] | None = None) -> list[FieldError]:
    """Validate a CIDR in a field that still accepts stored CIDRs of older, less strict formats.

    Args:
        path: the field path of the value, for the errors.
        stored_values: the CIDRs of the stored object, which are accepted as they are.
    """
    texts = is_valid_cidr_for_legacy_field(value, stored_values, strict=feature_gates.enabled(_STRICT))
    return [field.invalid(path, value, text) for text in texts]


def not_special_address(value: str, path: str) -> list[FieldError]:
    """Reject addresses that an endpoint cannot have: unspecified, loopback, link-local, link-local multicast.

    Args:
        path: the field path of the value, for the errors.

    Upstream: ValidateEndpointIP, ValidateNonSpecialIP.
    """
    return [field.invalid(path, value, text) for text in _special_address_texts(value)]


@bounded(count=8192, size=2 << 20, largest=512)
def _special_address_texts(value: str) -> tuple[str, ...]:
    """Return the error texts for a value that cannot be the IP address of an endpoint."""
    parsed = parse_sloppy(value)
    if parsed is None:
        return ("must be a valid IP address",)
    ip = unmapped(parsed)
    texts = []
    if ip.is_unspecified:
        texts.append(f"may not be unspecified ({value})")
    if ip.is_loopback:
        texts.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if ip.is_link_local:
        texts.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if (ip.version == 4 and ip.packed[:3] == b"\xe0\x00\x00") or (
        ip.version == 6 and ip.packed[0] == 0xFF and ip.packed[1] & 0xF == 2
    ):
        texts.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return tuple(texts)


def families(addresses: list[str]) -> tuple[bool, str]:
    """Return whether the addresses include both IPv4 and IPv6, or an error text.

    Returns:
        The result and "" if all addresses are valid; otherwise False and the error text.
    """
    is_ipv6_seen = set()
    for i, value in enumerate(addresses):
        if parse_sloppy(value) is None:
            return False, f"invalid IP[{i}]: {value}"
        is_ipv6_seen.add(is_ipv6(value))
    return len(is_ipv6_seen) == 2, ""


def csi_driver_name(name: str, path: str) -> list[FieldError]:
    """Validate the name of a CSI driver: a DNS subdomain (in any case) of at most 63 characters.

    Args:
        path: the field path of the name, for the errors.
    """
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, 63)] if len(name) > 63 else []
    return errors + [field.invalid(path, name, text) for text in is_dns1123_subdomain(name.lower())]


def domain_prefixed_key(key: str, path: str) -> list[FieldError]:
    """Validate a required key with a domain, such as `acme.io/foo`.

    Args:
        path: the field path of the key, for the errors.

    Upstream: IsDomainPrefixedKey
    """
    if not key:
        return [field.required(path)]
    if errors := qualified_name(key, path):
        return errors
    return [] if "/" in key else [field.invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')]
