"""Strategies of Pod and its status. Upstream: pkg/registry/core/pod/strategy.go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.core.podspec.features import drop_disabled, drop_init_container_annotations
from tetrapod.core.podspec.qos import qos_class
from tetrapod.core.podspec.stored import updating
from tetrapod.core.podspec.warnings import pod_warnings
from tetrapod.core.v1.pods import status_validation, validation
from tetrapod.core.v1.pods.defaults import FIX_GATE, default_pod_resources_after_admission, set_defaults
from tetrapod.core.v1.pods.preparation import app_armor_into_fields, merge_label_keys
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Revalidation, Strategy
from tetrapod.machinery.addresses import ip_warnings
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_label
from tetrapod.machinery.timestamps import now_rfc3339

_SPEC_FIELDS: Final = {
    "spec.nodeName": "nodeName",
    "spec.restartPolicy": "restartPolicy",
    "spec.schedulerName": "schedulerName",
    "spec.serviceAccountName": "serviceAccountName",
}
_DEFAULT_GRACE: Final = 30
_SURPRISING: Final = (
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is "
    "recommended: "
)
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_CLEARED_BY_EMPTY: Final = ("resourceClaimStatuses", "nodeAllocatableResourceClaimStatuses")
_STATUSES: Final = "initContainerStatuses|containerStatuses|ephemeralContainerStatuses[]"
_STATUS_FIELDS: Final = FieldGates(
    GatedFields("DynamicResourceAllocation", ("status.resourceClaimStatuses",), signs=("spec.resourceClaims",)),
    GatedFields("DRAExtendedResource", ("status.extendedResourceClaimStatus",)),
    GatedFields("ResourceHealthStatus", (f"status.{_STATUSES}.allocatedResourcesStatus",)),
    GatedFields("ResourceHealthStatusMessage", (f"status.{_STATUSES}.allocatedResourcesStatus[].resources[].message",)),
    GatedFields("ImageVolumeWithDigest", (f"status.{_STATUSES}.volumeMounts[].volumeStatus",)),
    GatedFields("DRANodeAllocatableResources", ("status.nodeAllocatableResourceClaimStatuses",)),
    GatedFields("CSIVolumeHealth", ("status.volumeHealth",)),
    GatedFields("InPlacePodLevelResourcesVerticalScaling", ("status.resources|allocatedResources",)),
)
"""The status fields that belong to feature gates.

Upstream: dropDisabledPodStatusFields.
"""
_KEPT_IN_STATUS: Final = ("qosClass", "observedGeneration", "extendedResourceClaimStatus", *_CLEARED_BY_EMPTY)


_SERVER_KEPT: Final = frozenset({"managedFields", "resourceVersion", "generation"})


class PodStrategy(Strategy):
    """The strategy of Pod, with graceful deletion. Updates keep the stored status."""

    has_status = True
    initial_status: Mapping[str, Any] = {}
    generation = ("spec",)
    return_deleted_object = True
    revalidates_generate_name: Revalidation = "after finalizers"
    indexed_field = "spec.nodeName"
    field_labels = (
        *_SPEC_FIELDS,
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )

    def default(self, obj: Object, version: str) -> None:
        set_defaults(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1
        drop_disabled(spec, {})
        drop_init_container_annotations(obj["metadata"])
        merge_label_keys(obj)
        ctx.warnings += app_armor_into_fields(obj)
        if spec.get("resources"):
            default_pod_resources_after_admission(spec)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [{"lastProbeTime": None, "lastTransitionTime": now_rfc3339(), **_GATED}]

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = old.get("status", {})
        spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
        keep_pod_resources(spec, old_spec)
        if spec.get("overhead") == {}:
            del spec["overhead"]
        drop_disabled(spec, old_spec)
        drop_init_container_annotations(new["metadata"])
        if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        messages = is_dns1123_label(obj["metadata"].get("name") or "")
        name_warnings = [f"{_SURPRISING}[{' '.join(messages)}]"] if messages else []
        return name_warnings + pod_warnings(obj)  # not on updates: components send many of them and ignore warnings

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validation.validate(obj)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        with updating(old):
            return validation.validate_update(new, old)

    def check_graceful_delete(self, ctx: Context, obj: Object, options: Object) -> bool:
        """Set gracePeriodSeconds of the delete options, and return True.

        It is that of the options, else that of the pod's spec, else 30. For a pod that has no node or has finished it
        is 0. A negative value becomes 1.
        """
        spec = obj.get("spec") or {}
        period = options.get("gracePeriodSeconds")
        if period is None:
            period = spec.get("terminationGracePeriodSeconds")
            period = _DEFAULT_GRACE if period is None else period
        if not spec.get("nodeName"):
            period = 0
        if (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
            period = 0
        options["gracePeriodSeconds"] = 1 if period < 0 else period
        return True

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        fields = {label: str(spec.get(key) or "") for label, key in _SPEC_FIELDS.items()}
        fields["spec.hostNetwork"] = "true" if spec.get("hostNetwork") else "false"
        fields["status.phase"] = status.get("phase") or ""
        ips = [ip.get("ip", "") for ip in status.get("podIPs") or ()]
        fields["status.podIP"] = ips[0] if ips else status.get("podIP") or ""
        fields["status.nominatedNodeName"] = status.get("nominatedNodeName") or ""
        return fields

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


class PodStatusStrategy(StatusStrategy):
    """The strategy of `pods/status`, which also ignores changes of ownerReferences and deletionTimestamp.

    Status fields that older kubelets do not know are kept from the stored status if an update leaves them unset.

    Args:
        main: the strategy of pods.
    """

    def __init__(self, main: Strategy) -> None:
        super().__init__(main, gated=_STATUS_FIELDS)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        meta, old_meta = new["metadata"], old["metadata"]
        for key in ("ownerReferences", "deletionTimestamp"):
            if key in old_meta:
                meta[key] = old_meta[key]
            else:
                meta.pop(key, None)
        status, old_status = new.setdefault("status", {}), old.get("status") or {}
        for key in _KEPT_IN_STATUS:  # old kubelets drop fields that they do not know
            if not status.get(key) and not (key in _CLEARED_BY_EMPTY and status.get(key) == []) and old_status.get(key):
                status[key] = old_status[key]
        _keep_observed_generations(status.get("conditions") or [], old_status.get("conditions") or [])

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        with updating(old):
            return status_validation.validate_status(new, old)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")]

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        status = new.get("status") or {}
        out: list[str] = []
        for key in ("podIPs", "hostIPs"):
            for i, entry in enumerate(status.get(key) or ()):
                out += ip_warnings(f"status.{key}[{i}].ip", entry.get("ip") or "")
        return out


def _keep_observed_generations(conditions: list[Object], old_conditions: list[Object]) -> None:
    """Copy an unset observedGeneration of a new condition from the stored condition of the same type, in place."""
    generations_by_type: dict[str, list[int]] = {}
    for condition in old_conditions:
        generations_by_type.setdefault(condition.get("type") or "", []).append(condition.get("observedGeneration") or 0)
    for condition in conditions:
        generations = generations_by_type.get(condition.get("type") or "")
        existing = generations.pop(0) if generations else 0
        if not condition.get("observedGeneration") and existing:
            condition["observedGeneration"] = existing


def keep_pod_resources(spec: Object, old_spec: Object) -> None:
    """Keep the stored pod-level resources in a new spec without them, in place.

    A client that does not know the field does not mean to remove it.
    """
    if spec.get("resources") is None and old_spec.get("resources") is not None and feature_gates.enabled(FIX_GATE):
        spec["resources"] = copy_value(old_spec["resources"])


def keep_metadata(new: Object, old: Object) -> None:
    """Replace the metadata of `new` by the stored metadata, except managed fields, resource version and generation.

    It is for subresources that change only a part of the spec.
    """
    meta = new["metadata"]
    for key in [k for k in meta if k not in _SERVER_KEPT]:
        del meta[key]
    for key, value in old["metadata"].items():
        if key not in _SERVER_KEPT:
            meta[key] = copy_value(value)


class EphemeralContainersStrategy(PodStrategy):
    """The strategy of `pods/ephemeralcontainers`. Changes of anything but spec.ephemeralContainers are ignored.

    Upstream: pkg/registry/core/pod/strategy.go, podEphemeralContainersStrategy.
    """

    has_status = False
    tabular = False

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        containers = (new.get("spec") or {}).get("ephemeralContainers")
        new["spec"] = {k: v for k, v in (old.get("spec") or {}).items() if k != "ephemeralContainers"}
        if containers:
            new["spec"]["ephemeralContainers"] = containers
        drop_disabled(new["spec"], old.get("spec") or {})
        new["status"] = old.get("status", {})
        keep_metadata(new, old)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        with updating(old):
            return validation.validate_ephemeral_update(new, old)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]
