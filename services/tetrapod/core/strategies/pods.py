"""Pod (upstream: pkg/registry/core/pod/strategy.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tetrapod.core.defaults.pod_spec import default_pod, default_pod_resources
from tetrapod.core.qos import qos_class
from tetrapod.core.strategies.pod_features import drop_disabled, drop_init_container_annotations
from tetrapod.core.strategies.pod_preparation import app_armor_into_fields, merge_label_keys
from tetrapod.core.validation import pod_status, pods
from tetrapod.core.warnings.pods import pod_warnings
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
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
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: "
)
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


_CLEARED_BY_EMPTY: Final = ("resourceClaimStatuses", "nodeAllocatableResourceClaimStatuses")
_GATED_STATUS: Final = ("nodeAllocatableResourceClaimStatuses", "volumeHealth")
"""Behind the gates DRANodeAllocatableResources and CSIVolumeHealth, which are off, as is ImageVolumeWithDigest (upstream:
dropDisabledPodStatusFields)."""
_KEPT_IN_STATUS: Final = ("qosClass", "observedGeneration", "extendedResourceClaimStatus", *_CLEARED_BY_EMPTY)


class PodStrategy(Strategy):
    has_status = True
    initial_status: Mapping[str, Any] = {}
    generation = ("spec",)
    return_deleted_object = True
    names_again = True
    field_labels = (*_SPEC_FIELDS, "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName")

    def default(self, obj: Object, version: str) -> None:
        default_pod(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1
        drop_disabled(spec, {})
        drop_init_container_annotations(obj["metadata"])
        merge_label_keys(obj)
        ctx.warnings += app_armor_into_fields(obj)
        if spec.get("resources"):
            default_pod_resources(spec)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [{"lastProbeTime": None, "lastTransitionTime": now_rfc3339(), **_GATED}]

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = old.get("status", {})
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        if spec.get("resources") is None and before.get("resources") is not None:
            spec["resources"] = copy_value(before["resources"])  # a client that does not know the field has not removed it
        if spec.get("overhead") == {}:
            del spec["overhead"]
        drop_disabled(spec, before)
        drop_init_container_annotations(new["metadata"])
        if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        wrong = is_dns1123_label(obj["metadata"].get("name") or "")
        name = [f"{_SURPRISING}[{' '.join(wrong)}]"] if wrong else []
        return name + pod_warnings(obj)  # updates are by machines, and many

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return pods.validate(obj)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return pods.validate_update(new, old)

    def check_graceful_delete(self, ctx: Context, obj: Object, options: Object) -> bool:
        """A pod that no node runs goes at once; else the user's period, or the spec's."""
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
    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        meta, old_meta = new["metadata"], old["metadata"]
        for key in ("ownerReferences", "deletionTimestamp"):
            if key in old_meta:
                meta[key] = old_meta[key]
            else:
                meta.pop(key, None)
        status, before = new.setdefault("status", {}), old.get("status") or {}
        for key in _KEPT_IN_STATUS:  # old kubelets drop what they do not know
            if not status.get(key) and not (key in _CLEARED_BY_EMPTY and status.get(key) == []) and before.get(key):
                status[key] = before[key]
        _keep_observed_generations(status.get("conditions") or [], before.get("conditions") or [])
        for key in _GATED_STATUS:
            if not before.get(key):
                status.pop(key, None)
        if not any(mount.get("volumeStatus") is not None for mount in _mounts(before)):
            for mount in _mounts(status):
                mount.pop("volumeStatus", None)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return pod_status.validate_status(new, old)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")]

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        status = new.get("status") or {}
        out: list[str] = []
        for key in ("podIPs", "hostIPs"):
            for i, entry in enumerate(status.get(key) or ()):
                out += ip_warnings(f"status.{key}[{i}].ip", entry.get("ip") or "")
        return out


def _mounts(status: Object) -> Iterator[Object]:
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container in status.get(kind) or ():
            yield from container.get("volumeMounts") or ()


def _keep_observed_generations(conditions: list[Object], before: list[Object]) -> None:
    """A condition that leaves its generation out keeps the one that the condition of its type had."""
    known: dict[str, list[int]] = {}
    for condition in before:
        known.setdefault(condition.get("type") or "", []).append(condition.get("observedGeneration") or 0)
    for condition in conditions:
        generations = known.get(condition.get("type") or "")
        kept = generations.pop(0) if generations else 0
        if not condition.get("observedGeneration") and kept:
            condition["observedGeneration"] = kept
