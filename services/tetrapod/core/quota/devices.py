"""What a ResourceClaim uses of quotas on devices of a class (upstream: pkg/quota/v1/evaluator/core/resource_claims.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import GroupResource, Object

CLAIMS: Final = GroupResource("resource.k8s.io", "resourceclaims")
CLASS_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
IMPLICIT: Final = "requests.deviceclass.resource.kubernetes.io/"
_MOST: Final = 32
"""Devices of one claim: what a request for all of them may come to."""


def device_usage(claim: Object) -> dict[str, int]:
    """By quota name; of alternatives the one that takes most counts, class by class."""
    total: dict[str, int] = {}
    for request in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ():
        # v1beta1 has the fields of an exact request in the request itself
        wanted = request.get("firstAvailable") or [request.get("exactly") or request]
        most: dict[str, int] = {}
        for alternative in wanted:
            name = alternative.get("deviceClassName") or ""
            most[name] = max(most.get(name, 0), _devices(alternative))
        for name, count in most.items():
            total[name] = total.get(name, 0) + count
    by_class = {f"{name}{CLASS_SUFFIX}": count for name, count in total.items()}
    return by_class | {f"{IMPLICIT}{name}": count for name, count in total.items() if name}


def _devices(request: Object) -> int:
    match request.get("allocationMode"):
        case "ExactCount":
            return int(request.get("count") or 0)
        case "All":
            return _MOST
    return 0
