"""Validation of `pods/resize`, which changes cpu and memory of running containers.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodResize.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from tetrapod.core.podspec.annotations import MIRROR
from tetrapod.core.podspec.qos import qos_class
from tetrapod.core.v1.pods.node_resources import STATUSES, uncovered
from tetrapod.core.v1.pods.resize_volumes import GATE, validate_volumes
from tetrapod.core.v1.pods.validation import metadata_and_spec
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.quantities import quantity
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

POD_LEVEL_GATE: Final = "InPlacePodLevelResourcesVerticalScaling"
INIT_GATE: Final = "InPlacePodVerticalScalingInitContainers"
_RESIZABLE: Final = ("cpu", "memory")
_NO_POD_LEVEL: Final = (
    f"resize of pods with pod-level resources is forbidden when {POD_LEVEL_GATE}Enabled feature gate is disabled"
)


def validate_resize(new: Object, old: Object) -> list[FieldError]:
    """Validate a resize: only cpu and memory may change, with a gate size limits of volumes in memory too.

    The QoS class must stay the same. Static pods, Windows pods, and pods on a node without support cannot be resized.
    Pods with pod-level resources, and init containers that are not sidecars, are resized with a gate each.
    """
    errors = metadata_and_spec(new)
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [field.forbidden("[]", "static pods cannot be resized")]
    if (old_spec.get("os") or {}).get("name") == "windows":
        return [field.forbidden("[]", "windows pods cannot be resized")]
    stored_class = (old.get("status") or {}).get("qosClass") or ""
    if (stored_class or qos_class(old_spec)) != qos_class(spec):
        errors.append(field.invalid("spec", stored_class, "Pod QOS Class may not change as a result of resizing"))
    if not _node_supports(old):
        errors.append(field.forbidden("spec", "Pod running on node without support for resize"))
    pod_level = _has_pod_level_resources(old_spec) or _has_pod_level_resources(spec)
    if pod_level and not feature_gates.enabled(POD_LEVEL_GATE):
        return [*errors, field.forbidden("[]", _NO_POD_LEVEL)]
    if pod_level:
        errors += _pod_level(new, spec, old_spec)
    if ordering := _ordering(spec, old_spec):
        return errors + ordering
    for kind in ("initContainers", "containers"):
        for i, (container, old_container) in enumerate(
            zip(spec.get(kind) or (), old_spec.get(kind) or (), strict=True)
        ):
            if kind == "containers" or _is_resizable(old_container):
                errors += _removed(
                    container.get("resources") or {},
                    old_container.get("resources") or {},
                    f"spec.{kind}[{i}].resources",
                    "resource",
                )
    errors += _others(spec, old_spec)
    resized = {"containers", "initContainers", "resources"}
    if feature_gates.enabled(GATE):
        errors += validate_volumes(spec.get("volumes") or [], old_spec.get("volumes") or [])
        resized.add("volumes")
    # Even empty pod-level resources must not be set or unset.
    set_or_unset = not pod_level and (spec.get("resources") is None) is not (old_spec.get("resources") is None)
    if not errors and (
        set_or_unset or _pod_rest(spec) != _pod_rest(old_spec) or _without(resized, spec) != _without(resized, old_spec)
    ):
        errors.append(field.forbidden("spec", "only cpu and memory resources are mutable"))
    return errors


def _has_pod_level_resources(spec: Object) -> bool:
    """Return whether a pod spec has pod-level requests or limits that are not empty."""
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


def _pod_level(pod: Object, spec: Object, old_spec: Object) -> list[FieldError]:
    """Validate the pod-level resources of a resize. Only cpu and memory may change, and none may be removed.

    With a gate they also cover what claims give to the pod.

    Args:
        pod: the new pod.
        spec: its spec.
        old_spec: the stored spec.
    """
    new, old = spec.get("resources"), old_spec.get("resources")
    if old is not None and new is None:
        return [field.forbidden("spec.resources", "pod-level resources cannot be removed")]
    errors = _removed(new or {}, old, "spec.resources", "pod-level resource") if old is not None else []
    if _pod_rest(spec) != _pod_rest(old_spec):
        errors.append(field.forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    counts_claims = feature_gates.enabled("DRANodeAllocatableResources") and (pod.get("status") or {}).get(STATUSES)
    if counts_claims and (reason := uncovered(pod)):
        errors.append(field.invalid("spec.resources", internal("Resources", new or {}), reason))
    return errors


def _pod_rest(spec: Object) -> Object:
    return _rest({"resources": spec.get("resources")})


def _without(names: Set[str], spec: Object) -> Object:
    return {k: v for k, v in spec.items() if k not in names}


def _ordering(spec: Object, old_spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for kind in ("containers", "initContainers"):
        new_containers, old_containers = spec.get(kind) or [], old_spec.get(kind) or []
        if len(new_containers) != len(old_containers):
            errors.append(field.forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize"))
            continue
        errors += [
            field.forbidden(f"spec.{kind}[{i}].name", f"{kind} may not be renamed or reordered on resize")
            for i, (new, old) in enumerate(zip(new_containers, old_containers, strict=True))
            if new.get("name") != old.get("name")
        ]
    return errors


def _node_supports(pod: Object) -> bool:
    """Return whether the kubelet of the pod's node supports resizing.

    Such a kubelet reports the resources of running containers. True if no container is running yet.
    """
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if (status.get("state") or {}).get("running") is not None:
            return status.get("resources") is not None
    return True


def _removed(new: Object, old: Object, path: str, holder: str) -> list[FieldError]:
    return [
        field.forbidden(f"{path}.{kind}", f"{holder} {kind} cannot be removed")
        for kind in ("requests", "limits")
        if (old.get(kind) or {}).keys() - (new.get(kind) or {}).keys()
    ]


def _others(spec: Object, old_spec: Object) -> list[FieldError]:
    """Reject changes of containers other than cpu and memory, and of init containers that would have to be restarted.

    Names and number of the containers must be equal.
    """
    errors: list[FieldError] = []
    for container, old_container in zip(spec.get("containers") or (), old_spec.get("containers") or (), strict=True):
        if _rest(container) != _rest(old_container):
            errors.append(field.forbidden("spec", "only cpu and memory resources are mutable"))
    for i, (container, old_container) in enumerate(
        zip(spec.get("initContainers") or (), old_spec.get("initContainers") or (), strict=True)
    ):
        at = f"spec.initContainers[{i}]"
        if not _is_resizable(container):
            if container != old_container:
                text = "resources for non-sidecar init containers are immutable"
                errors.append(field.forbidden("spec", text))
            continue
        if _rest(container) != _rest(old_container):
            errors.append(
                field.forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable")
            )
        restarts = any(
            policy.get("restartPolicy") == "RestartContainer" for policy in container.get("resizePolicy") or ()
        )
        if container != old_container and container.get("restartPolicy") != "Always" and restarts:
            text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            errors.append(field.forbidden(at, text))
    return errors


def _is_resizable(init_container: Object) -> bool:
    """Return whether an init container can be resized: a sidecar always, others with a gate."""
    return init_container.get("restartPolicy") == "Always" or feature_gates.enabled(INIT_GATE)


def _rest(container: Object) -> Object:
    """Return a comparable copy of a container without cpu and memory in its requests and limits."""
    resources = container.get("resources") or {}
    other_resources = {
        kind: {name: quantity(value) for name, value in (resources.get(kind) or {}).items() if name not in _RESIZABLE}
        for kind in ("limits", "requests")
    }
    return {**container, "resources": {**other_resources, "claims": resources.get("claims")}}
