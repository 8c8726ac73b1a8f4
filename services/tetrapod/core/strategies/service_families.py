"""The IP families of a Service on a cluster that has one (upstream: initIPFamilyFields of core/service/storage/alloc.go)."""

from __future__ import annotations

from tetrapod.core.strategies.service_changes import HEADLESS, needs_address
from tetrapod.machinery import field
from tetrapod.machinery.addresses import is_ipv6
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_SEVERAL = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"


def settle_families(spec: Object, ours: str) -> list[FieldError]:
    """Fill in ipFamilies and ipFamilyPolicy; returns why the cluster, whose family is `ours`, cannot do what is asked for."""
    if not needs_address(spec):
        return []
    ips, families = spec.get("clusterIPs") or [], list(spec.get("ipFamilies") or ())
    if ips[:1] != [HEADLESS]:
        for i, ip in enumerate(ips[len(families) :], len(families)):
            family = "IPv6" if is_ipv6(ip) else "IPv4"
            if family != ours:
                return [field.invalid(f"spec.clusterIPs[{i}]", ips, f"{family} is not configured on this cluster")]
            families.append(family)
    elif not spec.get("selector"):
        _anything(spec, families, ours)
        return []
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = "SingleStack"
    policy = spec["ipFamilyPolicy"]
    if policy == "SingleStack" and (len(families) > 1 or len(ips) > 1):
        return [field.invalid("spec.ipFamilyPolicy", policy, _SEVERAL)]
    if policy == "RequireDualStack":
        return [field.invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")]
    wrong = [
        field.invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster")
        for i, family in enumerate(families)
        if family != ours
    ]
    if not wrong:
        spec["ipFamilies"] = families or [ours]
    return wrong


def _anything(spec: Object, families: list[str], ours: str) -> None:
    """Headless without a selector: somebody else makes its endpoints, of whatever family."""
    families = families or [ours]
    if len(families) < 2 and spec.get("ipFamilyPolicy") != "SingleStack":
        families.append("IPv4" if families[0] == "IPv6" else "IPv6")
    spec["ipFamilies"] = families
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = "RequireDualStack"
