"""The check of volume types. Upstream: k8s.io/pod-security-admission/policy/check_restrictedVolumes.go."""

from __future__ import annotations

from typing import Final

from tetrapod.core.podsecurity.check import Check, Violation, names, plural, quoted
from tetrapod.core.podsecurity.policy import RESTRICTED
from tetrapod.machinery.gvk import Object

_ALLOWED: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
_FORBIDDEN: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def _restricted(metadata: Object, spec: Object) -> Violation | None:
    violating = [
        volume for volume in spec.get("volumes") or () if not any(volume.get(kind) is not None for kind in _ALLOWED)
    ]
    if not violating:
        return None
    kinds = sorted(
        {next((kind for kind in _FORBIDDEN if volume.get(kind) is not None), "unknown") for volume in violating}
    )
    type_list = f"{plural(kinds, 'restricted volume type')} {quoted(kinds)}"
    return Violation(
        "restricted volume types",
        f"{plural(violating, 'volume')} {quoted(names(violating))} {plural(violating, 'uses', 'use')} {type_list}",
    )


CHECKS: Final = (Check("restrictedVolumes", RESTRICTED, {0: _restricted}, overrides="hostPathVolumes"),)
