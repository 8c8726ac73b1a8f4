"""The group-versions that upstream's schemes contain, whether they are served or not.

DeleteOptions and WatchEvent are registered in each of them. The document of a custom resource uses client-go's scheme
(apiextensions-apiserver's OpenAPI builder). The Swagger document uses that of the server (pkg/api/legacyscheme), which
contains a few more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from tetrapod.machinery.gvk import Object

_VERSIONS: Final = {
    "": "v1",
    "admissionregistration.k8s.io": "v1 v1alpha1 v1beta1",
    "apps": "v1 v1beta1 v1beta2",
    "authentication.k8s.io": "v1 v1alpha1 v1beta1",
    "authorization.k8s.io": "v1 v1beta1",
    "autoscaling": "v1 v2",
    "batch": "v1 v1beta1",
    "certificates.k8s.io": "v1 v1alpha1 v1beta1",
    "coordination.k8s.io": "v1 v1alpha2 v1beta1",
    "discovery.k8s.io": "v1 v1beta1",
    "events.k8s.io": "v1 v1beta1",
    "extensions": "v1beta1",
    "flowcontrol.apiserver.k8s.io": "v1 v1beta1 v1beta2 v1beta3",
    "internal.apiserver.k8s.io": "v1alpha1",
    "lifecycle.k8s.io": "v1alpha1",
    "networking.k8s.io": "v1 v1beta1",
    "node.k8s.io": "v1 v1alpha1 v1beta1",
    "policy": "v1 v1beta1",
    "rbac.authorization.k8s.io": "v1 v1alpha1 v1beta1",
    "resource.k8s.io": "v1 v1alpha3 v1beta1 v1beta2",
    "scheduling.k8s.io": "v1 v1alpha3 v1beta1",
    "storage.k8s.io": "v1 v1alpha1 v1beta1",
    "storagemigration.k8s.io": "v1 v1beta1",
}
_OF_SERVERS: Final = {
    "admission.k8s.io": "v1 v1beta1",
    "apiextensions.k8s.io": "v1 v1beta1",
    "apiregistration.k8s.io": "v1 v1beta1",
    "imagepolicy.k8s.io": "v1alpha1",
}


@cache
def registered_versions() -> Mapping[str, Sequence[str]]:
    """Return the versions of each group in the scheme of the server, by the name of the group.

    Do not modify the result.
    """
    return {group: versions.split() for group, versions in (_VERSIONS | _OF_SERVERS).items()}


def kinds_in_all_groups(kind: str, *, servers: bool = False) -> list[Object]:
    """Return a new `x-kubernetes-group-version-kind` list of a kind that is registered in every group-version.

    Args:
        kind: the kind.
        servers: whether to use the scheme of the server instead of client-go's.
    """
    known = _VERSIONS | (_OF_SERVERS if servers else {})
    return [
        {"group": group, "kind": kind, "version": version}
        for group in sorted(known)
        for version in known[group].split()
    ]
