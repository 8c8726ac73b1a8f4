"""`pods/resize`: cpu and memory of running containers (upstream: ValidatePodResize)."""

from __future__ import annotations

from typing import Final

from tetrapod.core.qos import qos_class
from tetrapod.core.validation.pod_annotations import MIRROR
from tetrapod.core.validation.pods import metadata_and_spec
from tetrapod.core.validation.quantities import quantity
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_RESIZABLE: Final = ("cpu", "memory")


def validate_resize(new: Object, old: Object) -> list[FieldError]:
    errors = metadata_and_spec(new)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [field.forbidden("[]", "static pods cannot be resized")]
    if (before.get("os") or {}).get("name") == "windows":
        return [field.forbidden("[]", "windows pods cannot be resized")]
    qos = qos_class(spec)
    if ((old.get("status") or {}).get("qosClass") or qos_class(before)) != qos:
        errors.append(field.invalid("spec", qos, "Pod QOS Class may not change as a result of resizing"))
    if not _node_supports(old):
        errors.append(field.forbidden("spec", "Pod running on node without support for resize"))
    for kind in ("initContainers", "containers"):
        had = before.get(kind) or []
        for i, container in enumerate((spec.get(kind) or [])[: len(had)]):
            if kind == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            errors += _removed(container.get("resources") or {}, had[i].get("resources") or {}, f"spec.{kind}[{i}].resources")
    return errors + _others(spec, before)


def _node_supports(pod: Object) -> bool:
    """The kubelet says so by reporting resources of what runs."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if (status.get("state") or {}).get("running") is not None:
            return status.get("resources") is not None
    return True


def _removed(new: Object, old: Object, path: str) -> list[FieldError]:
    return [
        field.forbidden(f"{path}.{kind}", f"resource {kind} cannot be removed")
        for kind in ("requests", "limits")
        if (old.get(kind) or {}).keys() - (new.get(kind) or {}).keys()
    ]


def _others(spec: Object, before: Object) -> list[FieldError]:
    """Nothing but cpu and memory changes, and of init containers only those that stay."""
    errors: list[FieldError] = []
    for container, had in zip(spec.get("containers") or (), before.get("containers") or (), strict=False):
        if _rest(container) != _rest(had):
            errors.append(field.forbidden("spec", "only cpu and memory resources are mutable"))
    for container, had in zip(spec.get("initContainers") or (), before.get("initContainers") or (), strict=False):
        if container.get("restartPolicy") == "Always":
            if _rest(container) != _rest(had):
                errors.append(field.forbidden("spec", "only cpu and memory resources for sidecar containers are mutable"))
        elif container != had:
            errors.append(field.forbidden("spec", "resources for non-sidecar init containers are immutable"))
    return errors


def _rest(container: Object) -> Object:
    """A container without what a resize may change."""
    resources = container.get("resources") or {}
    kept = {
        kind: {name: quantity(value) for name, value in (resources.get(kind) or {}).items() if name not in _RESIZABLE}
        for kind in ("limits", "requests")
    }
    return {**container, "resources": {**kept, "claims": resources.get("claims")}}
