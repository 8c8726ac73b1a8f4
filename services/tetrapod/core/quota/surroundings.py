"""What the usage of a ResourceClaim depends on besides the claim: device classes, its pod, and the claims that are the pod's too.

Upstream: getVerifiedPodUsage and resourceClaimPodOwnerGetter of pkg/quota/v1/evaluator/core/resource_claims.go.
"""

from __future__ import annotations

from typing import Final, Protocol

from tetrapod.core.quota.devices import Extended, Surroundings
from tetrapod.core.quota.usage import usage_of
from tetrapod.generic.quota.charge import Usage
from tetrapod.machinery.gvk import GroupResource, Object

_MADE_FOR_A_POD: Final = "resource.kubernetes.io/extended-resource-claim"
_PODS: Final = GroupResource("", "pods")


class Look(Protocol):
    """At the objects of a cluster; a moment old is good enough."""

    async def classes(self) -> list[Object]: ...

    async def pod(self, namespace: str, name: str) -> Object | None: ...

    async def claims(self, namespace: str) -> list[Object]: ...


async def around(claim: Object, look: Look) -> Surroundings:
    return Surroundings(Extended.of(await look.classes()), await _charged(claim, look))


async def _charged(claim: Object, look: Look) -> Usage:
    """What the pod uses that the claim was made for, where it is the claim's indeed."""
    meta = claim["metadata"]
    owner = _owner(claim)
    if owner is None:
        return {}
    pod = await look.pod(meta["namespace"], owner.get("name") or "")
    if pod is None or pod["metadata"].get("uid") != owner.get("uid"):
        return {}
    said = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    if said is not None:
        return usage_of(_PODS, pod) if said.get("resourceClaimName") == meta.get("name") else {}
    others = [one for one in await look.claims(meta["namespace"]) if (_owner(one) or {}).get("uid") == owner.get("uid")]
    return {} if any(_age(one) < _age(claim) for one in others) else usage_of(_PODS, pod)


def _owner(claim: Object) -> Object | None:
    """The pod for whose extended resources a scheduler made the claim."""
    meta = claim["metadata"]
    if (meta.get("annotations") or {}).get(_MADE_FOR_A_POD) != "true":
        return None
    controller: Object | None = next((ref for ref in meta.get("ownerReferences") or () if ref.get("controller")), None)
    return controller if controller is not None and (controller.get("kind"), controller.get("apiVersion")) == ("Pod", "v1") else None


def _age(claim: Object) -> tuple[str, str]:
    return claim["metadata"].get("creationTimestamp") or "", claim["metadata"].get("name") or ""
