"""Validation of clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy of a Service, together and across an update.

The allocation of cluster IPs calls it too, before it allocates.

Upstream: pkg/apis/core/validation/validation.go, ValidateServiceClusterIPsRelatedFields,
validateUpgradeDowngradeClusterIPs and validateUpgradeDowngradeIPFamilies.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation.names import address, families
from tetrapod.machinery import field
from tetrapod.machinery.addresses import is_ipv6
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_FIXED: Final = "may not change once set"
_PATH: Final = "spec.clusterIPs"


def is_headless(spec: Object) -> bool:
    """Return whether a Service spec is headless: spec.clusterIPs is ["None"]."""
    return spec.get("clusterIPs") == ["None"]


def addresses_and_families(spec: Object, old_spec: Object) -> list[FieldError]:
    """Validate clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy of a Service; type ExternalName has no errors.

    clusterIP is the first of at most two clusterIPs, of different families. ipFamilies are known, unique, and those of
    the addresses.

    Args:
        old_spec: the stored spec; {} on create. Addresses that it contains may keep a legacy format.
    """
    if spec.get("type") == "ExternalName":
        return []
    ip, ips, ip_families = spec.get("clusterIP") or "", spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    errors: list[FieldError] = []
    if ip and not ips:
        errors.append(field.required(_PATH))
    elif ip and ips[0] != ip:
        errors.append(field.invalid(_PATH, ips, "first value must match `clusterIP`"))
    elif not ip and ips:
        errors.append(field.invalid(_PATH, ips, "must be empty when `clusterIP` is not specified"))
    repeated_indexes = repeated(ip_families)
    for i, family in enumerate(ip_families):
        if family not in FAMILIES:
            errors.append(field.not_supported(f"spec.ipFamilies[{i}]", family, FAMILIES))
        if i in repeated_indexes:
            errors.append(field.duplicate(f"spec.ipFamilies[{i}]", family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(field.not_supported("spec.ipFamilyPolicy", policy, _POLICIES))
    address_errors = _each(ips, old_spec.get("clusterIPs") or [])
    errors += address_errors
    if len(ips) > 2:
        errors.append(field.invalid(_PATH, ips, "may only hold up to 2 values"))
    if address_errors:
        return errors
    if len(ips) > 1 and not families(ips)[0]:
        errors.append(field.invalid(_PATH, ips, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for i, (value, family) in enumerate(zip(ips, ip_families, strict=False)):
            if is_ipv6(value) != (family == "IPv6"):
                errors.append(
                    field.invalid(
                        f"{_PATH}[{i}]", value, f"expected an {family} value as indicated by `ipFamilies[{i}]`"
                    )
                )
    return errors


def _each(ips: list[str], stored_values: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, value in enumerate(ips):
        if i == 0 and value == "None":
            if len(ips) > 1:
                errors.append(field.invalid(_PATH, ips, "'None' must be the first and only value"))
            continue
        errors += address(value, f"{_PATH}[{i}]", stored_values)
    return errors


def changed_addresses(spec: Object, old_spec: Object) -> list[FieldError]:
    """Reject changes of the primary cluster IP; a secondary one may be added, or removed with policy SingleStack.

    Changes from or to type ExternalName, and of Services that stay headless, are accepted.

    Args:
        spec: the new spec.
        old_spec: the stored spec.
    """
    if "ExternalName" in (spec.get("type"), old_spec.get("type")) or (is_headless(spec) and is_headless(old_spec)):
        return []
    new_ips, old_ips = spec.get("clusterIPs") or [], old_spec.get("clusterIPs") or []
    if len(new_ips) == len(old_ips):
        return [field.invalid(f"{_PATH}[{i}]", new_ips, _FIXED) for i, ip in enumerate(old_ips) if ip != new_ips[i]]
    errors: list[FieldError] = []
    if not new_ips:
        errors.append(field.invalid(f"{_PATH}[0]", None, "primary clusterIP can not be unset"))
    if new_ips and old_ips and new_ips[0] != old_ips[0]:
        errors.append(field.invalid(f"{_PATH}[0]", new_ips, _FIXED))
    if len(old_ips) > len(new_ips) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        text = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(field.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), text))
    return errors


def changed_families(spec: Object, old_spec: Object) -> list[FieldError]:
    """Reject changes of the primary IP family; a secondary one may be added, or released with policy SingleStack.

    Changes from or to type ExternalName or a headless Service are accepted.
    """
    if "ExternalName" in (spec.get("type"), old_spec.get("type")) or is_headless(spec) or is_headless(old_spec):
        return []
    path = "spec.ipFamilies[0]"
    new_families, old_families = spec.get("ipFamilies") or [], old_spec.get("ipFamilies") or []
    if len(new_families) == len(old_families):
        return [
            field.invalid(path, new_families, _FIXED)
            for i, family in enumerate(old_families)
            if family != new_families[i]
        ]
    errors: list[FieldError] = []
    if len(old_families) > len(new_families) and not spec.get("clusterIPs"):
        errors.append(field.invalid(path, new_families or None, "primary ipFamily can not be unset"))
    if new_families and old_families and new_families[0] != old_families[0]:
        errors.append(field.invalid(path, spec.get("clusterIPs") or None, _FIXED))
    if len(old_families) > len(new_families) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        text = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(field.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), text))
    return errors
