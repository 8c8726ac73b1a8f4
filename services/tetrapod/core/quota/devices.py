"""What a ResourceClaim uses of quotas on devices of a class (upstream: pkg/quota/v1/evaluator/core/resource_claims.go).

Pods ask for such devices by the extended resource name of a class; the claim that a scheduler makes of it is charged for no more
than its pod has not been. What that takes besides the claim itself is gathered by `surroundings.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tetrapod.generic.quota.charge import Usage
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.quantity import Quantity

CLAIMS: Final = GroupResource("resource.k8s.io", "resourceclaims")
CLASS_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
REQUESTS: Final = "requests."
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
_MOST: Final = 32
"""Devices of one claim: what a request for all of them may come to."""
_ZERO: Final = Quantity.from_int(0)


@dataclass(frozen=True, slots=True)
class Extended:
    """The names by which pods ask for devices; a name that two classes have leads to both."""

    explicit: Mapping[str, str] = field(default_factory=dict)
    """By class, where it has one."""
    known: Collection[str] = ()
    """All names, of every class the one that follows from its own among them."""

    @classmethod
    def of(cls, classes: Iterable[Object]) -> Extended:
        named = {one["metadata"]["name"]: (one.get("spec") or {}).get("extendedResourceName") for one in classes}
        explicit = {name: resource for name, resource in named.items() if resource}
        return cls(explicit, {*explicit.values(), *(f"{IMPLICIT}{name}" for name in named)})

    def counts_claims(self, quota_name: str) -> bool:
        """Whether claims use of what a quota names."""
        return quota_name.startswith(REQUESTS) and quota_name.removeprefix(REQUESTS) in self.known


NO_NAMES: Final = Extended()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`charged`: what the pod that a claim was made for uses already."""

    names: Extended = NO_NAMES
    charged: Usage = field(default_factory=dict)


ALONE: Final = Surroundings()


def device_usage(claim: Object, around: Surroundings) -> Usage:
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
    used = {f"{name}{CLASS_SUFFIX}": Quantity.from_int(count) for name, count in total.items()}
    extended: Usage = {}
    for name, count in total.items():
        if name:
            resource = around.names.explicit.get(name)
            for asked in (f"{IMPLICIT}{name}", *((resource,) if resource else ())):
                extended[f"{REQUESTS}{asked}"] = Quantity.from_int(count) - around.charged.get(f"{REQUESTS}{asked}", _ZERO)
    return used | {name: left for name, left in extended.items() if left.sign > 0}


def _devices(request: Object) -> int:
    match request.get("allocationMode"):
        case "ExactCount":
            return int(request.get("count") or 0)
        case "All":
            return _MOST
    return 0
