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
    known = (old.get("status") or {}).get("qosClass") or ""
    if (known or qos_class(before)) != qos_class(spec):
        errors.append(field.invalid("spec", known, "Pod QOS Class may not change as a result of resizing"))
    if not _node_supports(old):
        errors.append(field.forbidden("spec", "Pod running on node without support for resize"))
    leveled = _of_the_pod(before) or _of_the_pod(spec)
    if leveled:
        errors += _pod_level(spec, before)
    if ordering := _ordering(spec, before):
        return errors + ordering
    for kind in ("initContainers", "containers"):
        for i, (container, had) in enumerate(zip(spec.get(kind) or (), before.get(kind) or (), strict=True)):
            errors += _removed(container.get("resources") or {}, had.get("resources") or {}, f"spec.{kind}[{i}].resources", "resource")
    errors += _others(spec, before)
    appears = not leveled and (spec.get("resources") is None) is not (before.get("resources") is None)  # of nothing, even
    if not errors and (appears or (_pod_rest(spec), _spec_rest(spec)) != (_pod_rest(before), _spec_rest(before))):
        errors.append(field.forbidden("spec", "only cpu and memory resources are mutable"))
    return errors


def _of_the_pod(spec: Object) -> bool:
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


def _pod_level(spec: Object, before: Object) -> list[FieldError]:
    new, old = spec.get("resources"), before.get("resources")
    if old is not None and new is None:
        return [field.forbidden("spec.resources", "pod-level resources cannot be removed")]
    errors = _removed(new or {}, old, "spec.resources", "pod-level resource") if old is not None else []
    if _pod_rest(spec) != _pod_rest(before):
        errors.append(field.forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    return errors


def _pod_rest(spec: Object) -> Object:
    return _rest({"resources": spec.get("resources")})


def _spec_rest(spec: Object) -> Object:
    return {k: v for k, v in spec.items() if k not in ("containers", "initContainers", "resources")}


def _ordering(spec: Object, before: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for kind in ("containers", "initContainers"):
        now, had = spec.get(kind) or [], before.get(kind) or []
        if len(now) != len(had):
            errors.append(field.forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize"))
            continue
        errors += [
            field.forbidden(f"spec.{kind}[{i}].name", f"{kind} may not be renamed or reordered on resize")
            for i, (new, old) in enumerate(zip(now, had, strict=True))
            if new.get("name") != old.get("name")
        ]
    return errors


def _node_supports(pod: Object) -> bool:
    """The kubelet says so by reporting resources of what runs."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if (status.get("state") or {}).get("running") is not None:
            return status.get("resources") is not None
    return True


def _removed(new: Object, old: Object, path: str, what: str) -> list[FieldError]:
    return [
        field.forbidden(f"{path}.{kind}", f"{what} {kind} cannot be removed")
        for kind in ("requests", "limits")
        if (old.get(kind) or {}).keys() - (new.get(kind) or {}).keys()
    ]


def _others(spec: Object, before: Object) -> list[FieldError]:
    """Nothing but cpu and memory changes."""
    errors: list[FieldError] = []
    for container, had in zip(spec.get("containers") or (), before.get("containers") or (), strict=True):
        if _rest(container) != _rest(had):
            errors.append(field.forbidden("spec", "only cpu and memory resources are mutable"))
    for i, (container, had) in enumerate(zip(spec.get("initContainers") or (), before.get("initContainers") or (), strict=True)):
        at = f"spec.initContainers[{i}]"
        if _rest(container) != _rest(had):
            errors.append(field.forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable"))
        restarts = any(policy.get("restartPolicy") == "RestartContainer" for policy in container.get("resizePolicy") or ())
        if container != had and container.get("restartPolicy") != "Always" and restarts:
            text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            errors.append(field.forbidden(at, text))
    return errors


def _rest(container: Object) -> Object:
    """A container without what a resize may change."""
    resources = container.get("resources") or {}
    kept = {
        kind: {name: quantity(value) for name, value in (resources.get(kind) or {}).items() if name not in _RESIZABLE}
        for kind in ("limits", "requests")
    }
    return {**container, "resources": {**kept, "claims": resources.get("claims")}}
