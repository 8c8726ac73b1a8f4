"""Validation of ServiceCIDR and IPAddress.

Upstream: pkg/apis/networking/validation/validation.go.
"""

from __future__ import annotations

from tetrapod.core.validation.names import IMMUTABLE, complaints
from tetrapod.machinery import field
from tetrapod.machinery.addresses import is_valid_cidr, is_valid_ip
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.ip_addresses import parse_cidr_sloppy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain, is_path_segment_name

_ONE_EACH = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


def validate_cidrs(obj: Object) -> list[FieldError]:
    """Validate a new ServiceCIDR: one or two CIDRs, at most one per IP family."""
    cidrs, path = (obj.get("spec") or {}).get("cidrs") or [], "spec.cidrs"
    if not cidrs:
        return [field.required(path, "at least one CIDR required")]
    if len(cidrs) > 2:
        return [field.invalid(path, {"CIDRs": cidrs}, "may only hold up to 2 values")]
    errors = [error for i, cidr in enumerate(cidrs) for error in complaints(is_valid_cidr, cidr, f"{path}[{i}]")]
    parsed = [parse_cidr_sloppy(cidr) for cidr in cidrs]
    if len(cidrs) == 2 and all(parsed) and len({f[1].version for f in parsed if f}) < 2:
        errors.append(field.invalid(path, cidrs, _ONE_EACH))
    return errors


def validate_cidrs_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated ServiceCIDR: a second CIDR may be added, existing ones are immutable."""
    cidrs, old_cidrs = ((obj.get("spec") or {}).get("cidrs") or [] for obj in (new, old))
    path = "spec.cidrs"
    if cidrs == old_cidrs:
        return []
    if len(old_cidrs) == 1 and len(cidrs) == 2:
        errors = [] if cidrs[0] == old_cidrs[0] else [field.invalid(f"{path}[0]", cidrs[0], IMMUTABLE)]
        return errors + validate_cidrs(new)
    if len(old_cidrs) != len(cidrs):
        return [field.invalid(path, (new.get("spec") or {}).get("cidrs"), IMMUTABLE)]
    return [field.invalid(f"{path}[{i}]", new, IMMUTABLE) for i, (new, old) in enumerate(zip(cidrs, old_cidrs, strict=True)) if new != old]


def address_name(name: str, prefix: bool) -> list[str]:
    """Validate the name of an IPAddress, which must be a canonical IP address."""
    return is_valid_ip(name)


def validate_address(obj: Object) -> list[FieldError]:
    """Validate a new IPAddress."""
    parent, path = (obj.get("spec") or {}).get("parentRef"), "spec.parentRef"
    if parent is None:
        return [field.required(path)]
    errors: list[FieldError] = []
    if group := parent.get("group"):
        errors += complaints(is_dns1123_subdomain, group, f"{path}.group")
    for key in ("resource", "name"):
        if value := parent.get(key):
            errors += complaints(is_path_segment_name, value, f"{path}.{key}")
        else:
            errors.append(field.required(f"{path}.{key}"))
    if namespace := parent.get("namespace"):
        errors += complaints(is_path_segment_name, namespace, f"{path}.namespace")
    return errors


def validate_address_update(new: Object, old: Object) -> list[FieldError]:
    """Reject a change of spec.parentRef."""
    parent, old_parent = ((obj.get("spec") or {}).get("parentRef") for obj in (new, old))
    return [] if same(parent, old_parent) else [field.invalid("spec.parentRef", None, IMMUTABLE)]
