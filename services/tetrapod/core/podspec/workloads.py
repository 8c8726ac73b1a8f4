"""Rules that the kinds with a pod template share.

They cover the template, the selector, counters of the status, and the paths of `/scale`.

Upstream: pkg/apis/apps/validation/validation.go; pkg/apis/core/validation/validation.go, ValidatePodTemplateSpec.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.annotations import match_fields, pod_annotations
from tetrapod.core.podspec.validation import pod_spec
from tetrapod.core.validation import differences
from tetrapod.core.validation.names import not_negative
from tetrapod.generic.endpoints.scale import ScalePaths
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.machinery import field, go_structs
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import from_label_selector, validate_label_selector, validate_labels
from tetrapod.machinery.metadata import validate_annotations

MISMATCH: Final = "`selector` does not match template `labels`"
ABOVE_REPLICAS: Final = "cannot be greater than status.replicas"
NO_REPLICAS: Final = {"spec": {"replicas": 0}}
"""The members of a workload without values. Upstream's internal type has replicas as a number that is never unset."""
TERMINATING_REPLICAS: Final = FieldGates(
    GatedFields("DeploymentReplicaSetTerminatingReplicas", ("status.terminatingReplicas",))
)
"""The field of the status of Deployments and ReplicaSets that is behind a feature gate."""


def validate_selector(spec: Object, kind: str) -> list[FieldError]:
    """Validate spec.selector, which must be set and not empty.

    Args:
        kind: the kind in the error text.
    """
    selector = spec.get("selector")
    if selector is None:
        return [field.required("spec.selector")]
    errors = validate_label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(field.invalid("spec.selector", {}, f"empty selector is invalid for {kind}"))
    return errors


def validate_template_labels(spec: Object) -> list[FieldError] | None:
    """Validate that spec.selector matches the labels of the pod template; an empty selector matches all.

    Returns:
        The errors, or None if the selector itself is invalid.
    """
    try:
        parsed = from_label_selector(spec.get("selector"))
    except ValueError:
        return None
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    return (
        []
        if parsed.matches(labels or {})
        else [field.invalid("spec.template.metadata.labels", go_structs.labels(labels), MISMATCH)]
    )


def validate_restart_policy(template: Object, kind: str) -> list[FieldError]:
    """Validate a template whose pods are kept running: restartPolicy must be Always, activeDeadlineSeconds unset.

    Args:
        kind: the kind in the error text.
    """
    spec, path = template.get("spec") or {}, "spec.template.spec"
    errors = []
    if (policy := spec.get("restartPolicy") or "") != "Always":
        errors.append(field.not_supported(f"{path}.restartPolicy", policy, ["Always"]))
    if spec.get("activeDeadlineSeconds") is not None:
        errors.append(
            field.forbidden(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")
        )
    return errors


def validate_replicated_template(spec: Object) -> list[FieldError]:
    """Validate the pod template of a ReplicaSet spec, and that the selector matches its labels."""
    errors = validate_template_labels(spec)
    template = spec.get("template") or {}
    if errors is None:
        return [field.invalid("spec.selector", go_structs.selector(spec.get("selector")), "invalid label selector")]
    return errors + pod_template_spec(template, "spec.template") + validate_restart_policy(template, "ReplicaSet")


def internal_strategy(kind: str, update: Object | None) -> Object:
    """Return an update strategy as error messages print upstream's internal struct.

    Args:
        kind: its type, such as "RollingUpdate".
        update: its rollingUpdate; None if it is not set.
    """
    rolling_update = (
        None
        if update is None
        else {name: update.get(name[0].lower() + name[1:], 0) for name in ("MaxUnavailable", "MaxSurge")}
    )
    return {"Type": kind, "RollingUpdate": rolling_update}


def validate_selector_update(new: Object, old: Object) -> list[FieldError]:
    """Return an error if spec.selector differs between `new` and `old`."""
    selector, old_selector = (new.get("spec") or {}).get("selector"), (old.get("spec") or {}).get("selector")
    return differences.immutable(selector, old_selector, "spec.selector", go_structs.selector(selector))


def validate_counters(status: Object, names: tuple[str, ...]) -> list[FieldError]:
    """Reject negative values of the named status fields."""
    return [error for name in names for error in not_negative(status.get(name), f"status.{name}")]


def validate_maximum(status: Object, names: tuple[str, ...], limit: str, text: str) -> list[FieldError]:
    """Return an error with `text` for each named status field that exceeds the status field `limit`; unset is 0."""
    most = status.get(limit) or 0
    return [
        field.invalid(f"status.{name}", status.get(name) or 0, text) for name in names if (status.get(name) or 0) > most
    ]


def validate_collision_count(new: Object, old: Object) -> list[FieldError]:
    """Return an error if status.collisionCount is smaller than the stored one, or no longer set."""
    count, old_count = ((obj.get("status") or {}).get("collisionCount") for obj in (new, old))
    if old_count is None or (count is not None and count >= old_count):
        return []
    return [field.invalid("status.collisionCount", count or 0, "cannot be decremented")]


def pod_template_spec(template: Object, path: str) -> list[FieldError]:
    """Validate the pod template of any kind.

    Labels, annotations and the pod spec are valid, and ephemeralContainers is unset.

    Args:
        path: the field path of the template.
    """
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = validate_labels(meta.get("labels"), f"{path}.labels")
    errors += validate_annotations(meta.get("annotations"), f"{path}.annotations")
    errors += pod_annotations(meta, spec, f"{path}.annotations")
    errors += pod_spec(spec, f"{path}.spec", pod=False)
    errors += match_fields(meta, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        errors.append(
            field.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")
        )
    return errors


def scale() -> ScalePaths:
    """Return the field paths that `/scale` of a workload uses.

    They are spec.replicas, status.replicas and spec.selector.
    """
    return ScalePaths(
        spec_replicas=("spec", "replicas"), status_replicas=("status", "replicas"), selector=("spec", "selector")
    )
