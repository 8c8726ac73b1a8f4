"""clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy of a Service, together and over an update.

Also asked before addresses are allocated. Upstream: ValidateServiceClusterIPsRelatedFields, validateUpgradeDowngrade*.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation.names import address, families
from tetrapod.machinery import field
from tetrapod.machinery.addresses import is_ipv6
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_FIXED: Final = "may not change once set"
_PATH: Final = "spec.clusterIPs"


def is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == ["None"]


def addresses_and_families(spec: Object, before: Object) -> list[FieldError]:
    if spec.get("type") == "ExternalName":
        return []
    ip, ips, wanted = spec.get("clusterIP") or "", spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    errors: list[FieldError] = []
    if ip and not ips:
        errors.append(field.required(_PATH))
    elif ip and ips[0] != ip:
        errors.append(field.invalid(_PATH, ips, "first value must match `clusterIP`"))
    elif not ip and ips:
        errors.append(field.invalid(_PATH, ips, "must be empty when `clusterIP` is not specified"))
    for i, family in enumerate(wanted):
        if family not in FAMILIES:
            errors.append(field.not_supported(f"spec.ipFamilies[{i}]", family, FAMILIES))
        if family in wanted[:i]:
            errors.append(field.duplicate(f"spec.ipFamilies[{i}]", family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(field.not_supported("spec.ipFamilyPolicy", policy, _POLICIES))
    wrong = _each(ips, before.get("clusterIPs") or [])
    errors += wrong
    if len(ips) > 2:
        errors.append(field.invalid(_PATH, ips, "may only hold up to 2 values"))
    if wrong:
        return errors
    if len(ips) > 1 and not families(ips)[0]:
        errors.append(field.invalid(_PATH, ips, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for i, (value, family) in enumerate(zip(ips, wanted, strict=False)):
            if is_ipv6(value) != (family == "IPv6"):
                errors.append(field.invalid(f"{_PATH}[{i}]", value, f"expected an {family} value as indicated by `ipFamilies[{i}]`"))
    return errors


def _each(ips: list[str], known_before: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, value in enumerate(ips):
        if i == 0 and value == "None":
            if len(ips) > 1:
                errors.append(field.invalid(_PATH, ips, "'None' must be the first and only value"))
            continue
        errors += address(value, f"{_PATH}[{i}]", known_before)
    return errors


def changed_addresses(spec: Object, before: Object) -> list[FieldError]:
    """Addresses are kept while the service has any; a second one may come and go."""
    if "ExternalName" in (spec.get("type"), before.get("type")) or (is_headless(spec) and is_headless(before)):
        return []
    now, had = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if len(now) == len(had):
        return [field.invalid(f"{_PATH}[{i}]", now, _FIXED) for i, ip in enumerate(had) if ip != now[i]]
    errors: list[FieldError] = []
    if not now:
        errors.append(field.invalid(f"{_PATH}[0]", None, "primary clusterIP can not be unset"))
    if now and had and now[0] != had[0]:
        errors.append(field.invalid(f"{_PATH}[0]", now, _FIXED))
    if len(had) > len(now) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        text = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(field.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), text))
    return errors


def changed_families(spec: Object, before: Object) -> list[FieldError]:
    if "ExternalName" in (spec.get("type"), before.get("type")) or is_headless(spec) or is_headless(before):
        return []
    path = "spec.ipFamilies[0]"
    now, had = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    if len(now) == len(had):
        return [field.invalid(path, now, _FIXED) for i, family in enumerate(had) if family != now[i]]
    errors: list[FieldError] = []
    if len(had) > len(now) and not spec.get("clusterIPs"):
        errors.append(field.invalid(path, now or None, "primary ipFamily can not be unset"))
    if now and had and now[0] != had[0]:
        errors.append(field.invalid(path, spec.get("clusterIPs") or None, _FIXED))
    if len(had) > len(now) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        text = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(field.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), text))
    return errors
