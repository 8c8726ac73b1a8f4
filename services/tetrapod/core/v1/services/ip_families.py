"""Defaulting and validation of the IP families of a Service.

Upstream: pkg/registry/core/service/storage/alloc.go, initIPFamilyFields.
"""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.core.allocators.networks import family_of, other_family
from tetrapod.core.v1.services.address_validation import addresses_and_families
from tetrapod.core.v1.services.changes import HEADLESS, needs_address
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_PATH = "spec.ipFamilyPolicy"
_SINGLE = "SingleStack"


def set_ip_families(spec: Object, old_spec: Object | None, cluster_families: Sequence[str]) -> list[FieldError]:
    """Set unset ipFamilies and ipFamilyPolicy of a Service in place, and validate both with the cluster IPs.

    Args:
        old_spec: the stored spec, or None on create.
        cluster_families: the IP families of the cluster, the default one first: "IPv4" and "IPv6".

    Returns:
        Errors for addresses, families or policies that are invalid or that the cluster does not support. After an
        error, ipFamilies is left as it was.
    """
    if not needs_address(spec) or (old_spec is not None and is_unchanged_dual_stack(spec, old_spec)):
        return []
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = _policy(spec, old_spec or {})
    if invalid_fields := addresses_and_families(spec, old_spec or {}):
        return invalid_fields
    policy = spec["ipFamilyPolicy"]
    errors = [] if old_spec is None else _released(spec, old_spec, policy)
    ips, families = spec.get("clusterIPs") or [], list(spec.get("ipFamilies") or ())
    if policy == _SINGLE:
        text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
        for values, subject in ((ips, "cluster IPs"), (families, "IP families")):
            if len(values) == 2:
                errors.append(field.invalid(_PATH, policy, text.format(subject)))
    if ips[:1] != [HEADLESS]:
        for i, ip in enumerate(ips[len(families) :], len(families)):
            if (family := family_of(ip)) not in cluster_families:
                errors.append(
                    field.invalid(f"spec.clusterIPs[{i}]", ips, f"{family} is not configured on this cluster")
                )
            else:
                families.append(family)
    if errors:
        return errors
    if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
        # Users manage its endpoints, which can be of a family that the cluster does not support.
        spec["ipFamilies"] = _both(families or [cluster_families[0]], policy)
        return []
    if policy == "RequireDualStack" and len(cluster_families) < 2:
        errors.append(field.invalid(_PATH, policy, "this cluster is not configured for dual-stack services"))
    errors += [
        field.invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster")
        for i, family in enumerate(families)
        if family not in cluster_families
    ]
    if not errors:
        families = families or [cluster_families[0]]
        spec["ipFamilies"] = _both(families, policy) if len(cluster_families) == 2 else families
    return errors


def is_unchanged_dual_stack(spec: Object, old_spec: Object) -> bool:
    """Return whether an update keeps addresses, families and type of a Service with policy PreferDualStack.

    Such a Service neither gains nor loses an address when the cluster's families have changed.

    Upstream: isMatchingPreferDualStackClusterIPFields
    """
    return (
        needs_address(spec)
        and spec.get("type") == old_spec.get("type")
        and spec.get("ipFamilyPolicy") == "PreferDualStack"
        and old_spec.get("ipFamilyPolicy") in (None, "PreferDualStack")
        and all((spec.get(key) or []) == (old_spec.get(key) or []) for key in ("clusterIPs", "ipFamilies"))
    )


def _policy(spec: Object, old_spec: Object) -> str:
    """Return the default ipFamilyPolicy.

    It is the stored one, else RequireDualStack for a headless Service without selector, else SingleStack.
    """
    if old_spec.get("ipFamilyPolicy") is not None:
        return str(old_spec["ipFamilyPolicy"])
    return "RequireDualStack" if spec.get("clusterIP") == HEADLESS and not spec.get("selector") else _SINGLE


def _released(spec: Object, old_spec: Object, policy: str) -> list[FieldError]:
    """Remove the secondary address and family, in place, if the policy is SingleStack and they have not changed.

    Args:
        spec: the new spec.
        old_spec: the stored spec.
        policy: the new ipFamilyPolicy.

    Returns:
        Errors if the client removed them under another policy.
    """
    errors: list[FieldError] = []
    for key, subject in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        current, existing = spec.get(key) or [], old_spec.get(key) or []
        if policy == _SINGLE:
            if current == existing and len(current) > 1:
                spec[key] = current[:1]
        elif current and len(current) < len(existing):
            errors.append(field.invalid(_PATH, policy, f"must be 'SingleStack' to release the secondary {subject}"))
    return errors


def _both(families: list[str], policy: str) -> list[str]:
    """Return both IP families, the given ones first, if the policy is dual-stack, else `families`."""
    return families if len(families) == 2 or policy == _SINGLE else [*families, other_family(families[0])]
