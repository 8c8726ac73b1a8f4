"""Lookup of the objects that determine the usage of a ResourceClaim.

These are device classes, the claim's pod, and other claims of the pod. Errors of the lookups leave the functions here.

Upstream: pkg/quota/v1/evaluator/core/resource_claims.go, getVerifiedPodUsage and resourceClaimPodOwnerGetter.
"""

from __future__ import annotations

from typing import Final, Protocol

from tetrapod.core.quota.devices import ClaimContext, Extended
from tetrapod.core.quota.usage import usage_of
from tetrapod.generic.admission.quota import Usage
from tetrapod.machinery.gvk import GroupResource, Object

_MADE_FOR_A_POD: Final = "resource.kubernetes.io/extended-resource-claim"
_PODS: Final = GroupResource("", "pods")


class ClaimLookups(Protocol):
    """Reads of the objects that determine the usage of a ResourceClaim; slightly stale objects are acceptable."""

    async def classes(self) -> list[Object]:
        """Return all DeviceClasses."""
        ...

    async def pod(self, namespace: str, name: str) -> Object | None:
        """Return the pod, or None if it does not exist."""
        ...

    async def claims(self, namespace: str) -> list[Object]:
        """Return all ResourceClaims of the namespace."""
        ...


async def claim_context(claim: Object, lookups: ClaimLookups) -> ClaimContext:
    """Read the objects that determine the usage of a ResourceClaim, and return what the computation needs of them.

    Args:
        claim: the ResourceClaim.
        lookups: reads DeviceClasses, pods and claims.
    """
    return ClaimContext(Extended.of(await lookups.classes()), await _charged(claim, lookups))


async def _charged(claim: Object, lookups: ClaimLookups) -> Usage:
    """Return the usage of the pod for whose extended resources the scheduler created the claim.

    The pod's status names its claim. Until it does, the oldest of the claims that the pod owns is taken.

    Returns:
        {} if the claim was not created for a pod, the pod is gone or was recreated, or its claim is another one.
    """
    meta = claim["metadata"]
    owner = _owner(claim)
    if owner is None:
        return {}
    pod = await lookups.pod(meta["namespace"], owner.get("name") or "")
    if pod is None or pod["metadata"].get("uid") != owner.get("uid"):
        return {}
    claim_status = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    if claim_status is not None:
        return usage_of(_PODS, pod) if claim_status.get("resourceClaimName") == meta.get("name") else {}
    others = [
        other
        for other in await lookups.claims(meta["namespace"])
        if (_owner(other) or {}).get("uid") == owner.get("uid")
    ]
    return {} if any(_age(other) < _age(claim) for other in others) else usage_of(_PODS, pod)


def _owner(claim: Object) -> Object | None:
    """Return the owner reference to the pod for whose extended resources the scheduler created the claim, or None."""
    meta = claim["metadata"]
    if (meta.get("annotations") or {}).get(_MADE_FOR_A_POD) != "true":
        return None
    controller: Object | None = next((ref for ref in meta.get("ownerReferences") or () if ref.get("controller")), None)
    return (
        controller
        if controller is not None and (controller.get("kind"), controller.get("apiVersion")) == ("Pod", "v1")
        else None
    )


def _age(claim: Object) -> tuple[str, str]:
    return claim["metadata"].get("creationTimestamp") or "", claim["metadata"].get("name") or ""
