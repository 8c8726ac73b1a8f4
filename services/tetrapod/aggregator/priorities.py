"""The discovery priorities of the built-in group-versions: groupPriorityMinimum and versionPriority.

Upstream: k8s.io/kubernetes/pkg/controlplane/apiserver/aggregator.go and cmd/kube-apiserver/app/aggregator.go, the
default priorities.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import GroupVersion

_GROUPS: Final = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
    "storagemigration.k8s.io": 15800,
    "lifecycle.k8s.io": 15700,
}
_STABLE: Final = 15
_VERSIONS: Final = {
    GroupVersion("", "v1"): 1,
    GroupVersion("admissionregistration.k8s.io", "v1alpha1"): 9,
    GroupVersion("admissionregistration.k8s.io", "v1beta1"): 12,
    GroupVersion("autoscaling", "v2"): 30,
    GroupVersion("certificates.k8s.io", "v1beta1"): 9,
    GroupVersion("coordination.k8s.io", "v1alpha2"): 12,
    GroupVersion("coordination.k8s.io", "v1beta1"): 13,
    GroupVersion("flowcontrol.apiserver.k8s.io", "v1"): 21,
    GroupVersion("internal.apiserver.k8s.io", "v1alpha1"): 9,
    GroupVersion("lifecycle.k8s.io", "v1alpha1"): 1,
    GroupVersion("resource.k8s.io", "v1"): 21,
    GroupVersion("resource.k8s.io", "v1alpha3"): 1,
    GroupVersion("resource.k8s.io", "v1beta1"): 9,
    GroupVersion("resource.k8s.io", "v1beta2"): 15,
    GroupVersion("scheduling.k8s.io", "v1alpha3"): 3,
    GroupVersion("scheduling.k8s.io", "v1beta1"): 9,
    GroupVersion("storagemigration.k8s.io", "v1beta1"): 9,
}
CUSTOM: Final = (1000, 100)
"""The priorities of custom resources."""


def priorities(gv: GroupVersion) -> tuple[int, int] | None:
    """Return groupPriorityMinimum and versionPriority of a built-in group-version, or None for other groups."""
    group = _GROUPS.get(gv.group)
    if group is None:
        return None
    return group, _VERSIONS.get(gv, _STABLE)
