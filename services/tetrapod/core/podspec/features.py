"""Removal of pod fields whose feature gates are off, unless the stored object already has them.

Used for pods and for every kind with a pod template.
Upstream: pkg/api/pod/util.go, DropDisabledPodFields and DropDisabledTemplateFields.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.pod_resources import POD_LEVEL_GATE
from tetrapod.core.podspec.stored import uses_restart_rules
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.machinery.gvk import Object

_CONTAINERS: Final = "initContainers|containers|ephemeralContainers[]"
_PROBES: Final = f"{_CONTAINERS}.livenessProbe|readinessProbe|startupProbe"
_FILES: Final = "secret|configMap|downwardAPI"
_INIT_ANNOTATIONS: Final = tuple(
    f"pod.{stage}.kubernetes.io/init-container{rest}" for stage in ("alpha", "beta") for rest in ("s", "-statuses")
)
_FIELDS: Final = FieldGates(
    GatedFields("ContainerStopSignals", (f"{_CONTAINERS}.lifecycle?.stopSignal",)),
    GatedFields(
        "H2CContainerProbe",
        (f"{_PROBES}.httpGet.protocol", f"{_CONTAINERS}.lifecycle.postStart|preStop.httpGet.protocol"),
    ),
    GatedFields("GRPCContainerProbeTLS", (f"{_PROBES}.grpc.mode",)),
    GatedFields(
        "AtomicWriteVolumeUserFields",
        (
            f"volumes[].{_FILES}|projected.defaultUser",
            f"volumes[].{_FILES}.items[].user",
            f"volumes[].projected.sources[].{_FILES}.items[].user",
            "volumes[].projected.sources[].serviceAccountToken|clusterTrustBundle|podCertificate.user",
        ),
    ),
    GatedFields("ClusterTrustBundleProjection", ("volumes[].projected.sources[].clusterTrustBundle",)),
    GatedFields("PodCertificateRequest", ("volumes[].projected.sources[].podCertificate",)),
    GatedFields("EmptyDirVolumeMode", ("volumes[].emptyDir.mode",)),
    GatedFields("VolumeBindMountOptions", (f"{_CONTAINERS}.volumeMounts[].bindMountOptions",)),
    GatedFields("DynamicResourceAllocation", ("resourceClaims", f"{_CONTAINERS}.resources.claims")),
    GatedFields("GenericWorkload", ("schedulingGroup",)),
    GatedFields("EvictionRequestAPI", ("evictionResponders",)),
    GatedFields("EnvFiles", (f"{_CONTAINERS}.env[].valueFrom.fileKeyRef",)),
    GatedFields("MatchLabelKeysInPodTopologySpread", ("topologySpreadConstraints[].matchLabelKeys",)),
)
"""The fields of a pod spec that belong to feature gates."""


def drop_disabled(spec: Object, old_spec: Object) -> None:
    """Drop the fields of a pod spec that belong to disabled feature gates, in place.

    Args:
        old_spec: the stored pod spec, or {} on create. If it uses a feature in any container or volume, the feature's
            fields are kept everywhere.
    """
    _FIELDS.drop(spec, old_spec)
    if not feature_gates.enabled("ContainerRestartRules") and not uses_restart_rules(old_spec):
        _drop_restart_rules(spec)
    if "resources" in spec and not feature_gates.enabled(POD_LEVEL_GATE):
        stored = old_spec.get("resources") or {}
        if not stored.get("requests") and not stored.get("limits"):
            del spec["resources"]


def _drop_restart_rules(spec: Object) -> None:
    """Drop restart policies and restart rules of containers, in place. Sidecars keep their policy."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            container.pop("restartPolicyRules", None)
            if kind != "initContainers" or container.get("restartPolicy") != "Always":
                container.pop("restartPolicy", None)


def drop_init_container_annotations(meta: Object) -> None:
    """Drop the alpha and beta annotations that once defined init containers and have no effect now, in place."""
    annotations = meta.get("annotations") or {}
    for key in _INIT_ANNOTATIONS:
        if key in annotations:
            del annotations[key]
            if not annotations:
                del meta["annotations"]


def drop_disabled_of_template(template: Object | None, old_template: Object | None) -> None:
    """Drop the fields of a pod template that belong to disabled feature gates, and old init container annotations.

    Args:
        template: the new template, changed in place, or None.
        old_template: the stored one, or None on create. If it uses a feature, the feature's fields are kept.
    """
    if template:
        drop_disabled(template.get("spec") or {}, (old_template or {}).get("spec") or {})
        drop_init_container_annotations(template.get("metadata") or {})
