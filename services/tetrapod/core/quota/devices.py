"""The usage of a ResourceClaim in quotas that limit devices of a DeviceClass.

Pods can request devices by the extended resource name of a class. A claim that the scheduler creates for such a pod is
charged only for devices that exceed what its pod is charged for. `claim_context.py` reads the objects that this depends
on.
Upstream: pkg/quota/v1/evaluator/core/resource_claims.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tetrapod.generic.admission.quota import Usage
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.quantity import Quantity

CLAIMS: Final = GroupResource("resource.k8s.io", "resourceclaims")
CLASS_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
REQUESTS: Final = "requests."
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
_MOST: Final = 32
"""The maximum number of devices of one claim, which counts as the usage of a request for all devices."""
_ZERO: Final = Quantity.from_int(0)


@dataclass(frozen=True, slots=True)
class Extended:
    """The extended resource names of DeviceClasses. A name that two classes share applies to both.

    Attributes:
        explicit: the spec.extendedResourceName of each class that has one, by the name of the class.
        known: all names, including the implicit name `deviceclass.resource.kubernetes.io/CLASS` of every class.
    """

    explicit: Mapping[str, str] = field(default_factory=dict)
    known: Collection[str] = ()

    @classmethod
    def of(cls, classes: Iterable[Object]) -> Extended:
        """Return the explicit and implicit names of these DeviceClasses; none without the gate DRAExtendedResource."""
        if not feature_gates.enabled("DRAExtendedResource"):
            return NO_NAMES
        resource_by_class = {
            device_class["metadata"]["name"]: (device_class.get("spec") or {}).get("extendedResourceName")
            for device_class in classes
        }
        explicit = {name: resource for name, resource in resource_by_class.items() if resource}
        return cls(explicit, {*explicit.values(), *(f"{IMPLICIT}{name}" for name in resource_by_class)})

    def counts_claims(self, quota_name: str) -> bool:
        """Return whether the quota name is `requests.` followed by the extended resource name of a DeviceClass."""
        return quota_name.startswith(REQUESTS) and quota_name.removeprefix(REQUESTS) in self.known


NO_NAMES: Final = Extended()


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """The other objects that determine the usage of a ResourceClaim.

    Attributes:
        names: the extended resource names of DeviceClasses.
        charged: the usage of the pod that the claim was created for.
    """

    names: Extended = NO_NAMES
    charged: Usage = field(default_factory=dict)


ALONE: Final = ClaimContext()


def device_usage(claim: Object, context: ClaimContext) -> Usage:
    """Return the numbers of devices that the claim uses, by quota resource name.

    Names are those of the DeviceClass and of its extended resources. If a request has alternatives, the maximum of each
    class counts. Devices that the context's pod is charged for are subtracted from the extended resources.
    """
    total: dict[str, int] = {}
    for request in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ():
        # v1beta1 has the fields of an exact request in the request itself
        alternatives = request.get("firstAvailable") or [request.get("exactly") or request]
        maximum: dict[str, int] = {}
        for alternative in alternatives:
            name = alternative.get("deviceClassName") or ""
            maximum[name] = max(maximum.get(name, 0), _devices(alternative))
        for name, count in maximum.items():
            total[name] = total.get(name, 0) + count
    used = {f"{name}{CLASS_SUFFIX}": Quantity.from_int(count) for name, count in total.items()}
    if not feature_gates.enabled("DRAExtendedResource"):
        return used
    extended: Usage = {}
    for name, count in total.items():
        if name:
            resource = context.names.explicit.get(name)
            for extended_name in (f"{IMPLICIT}{name}", *((resource,) if resource else ())):
                extended[f"{REQUESTS}{extended_name}"] = Quantity.from_int(count) - context.charged.get(
                    f"{REQUESTS}{extended_name}", _ZERO
                )
    return used | {name: remaining for name, remaining in extended.items() if remaining.sign > 0}


def _devices(request: Object) -> int:
    """Return the number of devices of a request; a request for all devices counts as 32.

    Args:
        request: `exactly` of a device request, or one of its `firstAvailable` subrequests.
    """
    match request.get("allocationMode"):
        case "ExactCount":
            return int(request.get("count") or 0)
        case "All":
            return _MOST
    return 0
