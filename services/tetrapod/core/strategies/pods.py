"""Pod (upstream: pkg/registry/core/pod/strategy.go)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.core.defaults.pod_spec import default_pod
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_SPEC_FIELDS: Final = {
    "spec.nodeName": "nodeName",
    "spec.restartPolicy": "restartPolicy",
    "spec.schedulerName": "schedulerName",
    "spec.serviceAccountName": "serviceAccountName",
}
_DEFAULT_GRACE: Final = 30


class PodStrategy(Strategy):
    has_status = True
    initial_status: Mapping[str, Any] = {}
    generation = ("spec",)
    return_deleted_object = True
    field_labels = (*_SPEC_FIELDS, "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName")

    def default(self, obj: Object, version: str) -> None:
        default_pod(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj.get("spec") or {})}

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = old.get("status", {})

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
            elif key == "ownerReferences":
                meta.pop(key, None)
        status = new.setdefault("status", {})
        if not status.get("qosClass") and (old.get("status") or {}).get("qosClass"):
            status["qosClass"] = old["status"]["qosClass"]

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")]


_QOS_RESOURCES: Final = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort (upstream: pkg/apis/core/v1/helper/qos)."""
    if resources := spec.get("resources"):
        return _qos([resources])
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return _qos([c.get("resources") or {} for c in containers])


def _qos(all_resources: list[Object]) -> str:
    requested = limited = False
    guaranteed = True
    for resources in all_resources:
        requests, limits = _positive(resources.get("requests")), _positive(resources.get("limits"))
        requested, limited = requested or bool(requests), limited or bool(limits)
        if set(limits) != set(_QOS_RESOURCES) or any(name in requests and requests[name] != limits[name] for name in _QOS_RESOURCES):
            guaranteed = False
    if not requested and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(listed: Object | None) -> dict[str, Quantity]:
    found = {}
    for name in _QOS_RESOURCES:
        value = (listed or {}).get(name)
        if value is not None:
            quantity = Quantity.parse(str(value))
            if quantity.sign > 0:
                found[name] = quantity
    return found
