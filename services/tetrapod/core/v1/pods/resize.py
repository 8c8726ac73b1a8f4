"""The strategy of `pods/resize`. Upstream: pkg/registry/core/pod/strategy.go, podResizeStrategy."""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.features import drop_disabled
from tetrapod.core.podspec.stored import updating
from tetrapod.core.v1.pods import resize_validation, resize_volumes
from tetrapod.core.v1.pods.defaults import default_pod_resources_after_admission
from tetrapod.core.v1.pods.strategy import PodStrategy, keep_metadata, keep_pod_resources
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_KINDS: Final = ("initContainers", "containers")
_GATES_OF_FIELDS: Final = {"resources": resize_validation.POD_LEVEL_GATE, "volumes": resize_volumes.GATE}
_RESIZED: Final = ("resources", "resizePolicy")


class ResizeStrategy(PodStrategy):
    """The strategy of `pods/resize`. Changes of anything but resources and resizePolicy are ignored.

    Pod-level resources are ignored too without the gate InPlacePodLevelResourcesVerticalScaling.
    With the gate InPlacePodVerticalScalingMemoryBackedVolumes, changes of volumes are validated instead.
    If containers are added, removed, renamed or reordered, nothing is ignored and validation rejects the update.
    """

    has_status = False
    tabular = False

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new_spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
        # validation rejects a different number
        if all(len(new_spec.get(kind) or ()) == len(old_spec.get(kind) or ()) for kind in _KINDS):
            taken = {name for name, gate in _GATES_OF_FIELDS.items() if feature_gates.enabled(gate)}
            spec = {key: value for key, value in old_spec.items() if key not in taken}
            spec |= {key: new_spec[key] for key in taken if new_spec.get(key) is not None}
            for kind in _KINDS:
                if new_spec.get(kind):
                    spec[kind] = _resized(new_spec[kind], old_spec[kind])
            new["spec"] = spec
            new["status"] = old.get("status", {})
            keep_metadata(new, old)
        spec = new["spec"]
        keep_pod_resources(spec, old_spec)
        default_pod_resources_after_admission(spec)
        drop_disabled(spec, old_spec)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        with updating(old):
            return resize_validation.validate_resize(new, old)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


def _resized(requested: list[Object], stored: list[Object]) -> list[Object]:
    """Return copies of the containers `stored` with resources and resizePolicy of the containers `requested`.

    If names or order differ, return `requested` itself, which validation rejects. Both lists must have the same length.
    """
    if any(new.get("name") != old.get("name") for new, old in zip(requested, stored, strict=True)):
        return requested
    return [
        {
            **{k: v for k, v in old.items() if k not in _RESIZED},
            **{k: new[k] for k in _RESIZED if new.get(k) is not None},
        }
        for new, old in zip(requested, stored, strict=True)
    ]
