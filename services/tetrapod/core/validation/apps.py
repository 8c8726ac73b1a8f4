"""Validation of Deployment, ReplicaSet, DaemonSet and ControllerRevision.

Upstream: pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.podspec.templates import pod_template_spec
from tetrapod.core.validation import rolling, shown
from tetrapod.core.validation.names import not_negative
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import from_label_selector, validate_label_selector

MISMATCH: Final = "`selector` does not match template `labels`"
ABOVE_REPLICAS: Final = "cannot be greater than status.replicas"
_ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"
"""Annotation that holds a field of older API versions. Defaulting has already ensured that its value is a number."""
_REVISION_DATA: Final = "data must be a valid JSON object"


def selector_errors(spec: Object, kind: str) -> list[FieldError]:
    """Validate spec.selector, which must be set and not empty. `kind` appears in the error text."""
    selector = spec.get("selector")
    if selector is None:
        return [field.required("spec.selector")]
    errors = validate_label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(field.invalid("spec.selector", {}, f"empty selector is invalid for {kind}"))
    return errors


def matching_labels(spec: Object, path: str = "spec", *, empty_matches: bool = True) -> list[FieldError] | None:
    """Return an error if spec.selector does not match the labels of the pod template, and None if the selector is invalid.

    With `empty_matches`, an empty selector counts as matching.
    """
    selector = spec.get("selector")
    try:
        parsed = from_label_selector(selector)
    except ValueError:
        return None
    if empty_matches and selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return []
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    return [] if parsed.matches(labels or {}) else [field.invalid(f"{path}.template.metadata.labels", shown.labels(labels), MISMATCH)]


def endless(template: Object, kind: str, path: str = "spec.template") -> list[FieldError]:
    """Validate a template whose pods are kept running: restartPolicy must be Always, activeDeadlineSeconds unset."""
    spec = template.get("spec") or {}
    errors = []
    if (policy := spec.get("restartPolicy") or "") != "Always":
        errors.append(field.not_supported(f"{path}.spec.restartPolicy", policy, ["Always"]))
    if spec.get("activeDeadlineSeconds") is not None:
        errors.append(field.forbidden(f"{path}.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported"))
    return errors


def _replicated(spec: Object) -> list[FieldError]:
    """Validate the pod template and that the selector matches its labels."""
    errors = matching_labels(spec)
    template = spec.get("template") or {}
    if errors is None:
        return [field.invalid("spec.selector", shown.selector(spec.get("selector")), "invalid label selector")]
    return errors + pod_template_spec(template, "spec.template") + endless(template, "ReplicaSet")


def validate_deployment(obj: Object) -> list[FieldError]:
    """Validate a Deployment."""
    spec = obj.get("spec") or {}
    errors = not_negative(spec.get("replicas"), "spec.replicas")
    errors += selector_errors(spec, "deployment")
    errors += _replicated(spec)
    errors += _deployment_strategy(spec.get("strategy") or {})
    errors += not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += not_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")
    if rollback := (obj["metadata"].get("annotations") or {}).get(_ROLLBACK_TO):
        errors += not_negative(int(rollback), "spec.rollback.version")
    if (deadline := spec.get("progressDeadlineSeconds")) is not None:
        errors += not_negative(deadline, "spec.progressDeadlineSeconds")
        if deadline <= (spec.get("minReadySeconds") or 0):
            errors.append(field.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _deployment_strategy(strategy: Object) -> list[FieldError]:
    path, kind, update = "spec.strategy", strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if update is None else [field.forbidden(f"{path}.rollingUpdate", text)]
    if kind != "RollingUpdate":
        return [field.not_supported(path, _strategy(kind, update), ["Recreate", "RollingUpdate"])]
    if update is None:
        return [field.required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")]
    unavailable, surge, at = update.get("maxUnavailable"), update.get("maxSurge"), f"{path}.rollingUpdate.maxUnavailable"
    errors = rolling.amount(unavailable, at) + rolling.amount(surge, f"{path}.rollingUpdate.maxSurge")
    if rolling.number(unavailable) == 0 and rolling.number(surge) == 0:
        errors.append(field.invalid(at, unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + rolling.at_most_all(unavailable, at)


def _strategy(kind: str, update: Object | None) -> Object:
    """Return an update strategy as upstream prints its internal struct."""
    rolling_update = (
        None if update is None else {name: update.get(name[0].lower() + name[1:], 0) for name in ("MaxUnavailable", "MaxSurge")}
    )
    return {"Type": kind, "RollingUpdate": rolling_update}


def selector_is_kept(new: Object, old: Object) -> list[FieldError]:
    """Reject a change of spec.selector."""
    selector, old_selector = (new.get("spec") or {}).get("selector"), (old.get("spec") or {}).get("selector")
    return shown.immutable(selector, old_selector, "spec.selector", shown.selector(selector))


def validate_replica_set(obj: Object) -> list[FieldError]:
    """Validate a ReplicaSet."""
    spec = obj.get("spec") or {}
    errors = not_negative(spec.get("replicas"), "spec.replicas") + not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    return errors + selector_errors(spec, "deployment") + _replicated(spec)


def validate_daemon_set(obj: Object) -> list[FieldError]:
    """Validate a DaemonSet."""
    spec = obj.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    errors = validate_label_selector(selector, "spec.selector")
    errors += matching_labels(spec) or []
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(field.invalid("spec.selector", {}, "empty selector is invalid for daemonset"))
    errors += pod_template_spec(template, "spec.template") + endless(template, "DaemonSet")
    errors += not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    errors += _daemon_set_strategy(spec.get("updateStrategy") or {})
    return errors + not_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")


def validate_daemon_set_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated DaemonSet, whose selector is immutable."""
    return selector_is_kept(new, old) + validate_daemon_set(new)


def _daemon_set_strategy(strategy: Object) -> list[FieldError]:
    path, kind, update = "spec.updateStrategy", strategy.get("type") or "", strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [field.not_supported(path, _strategy(kind, update), ["RollingUpdate", "OnDelete"])]
    path += ".rollingUpdate"
    if update is None:
        return [field.required(path)]
    unavailable, surge = update.get("maxUnavailable"), update.get("maxSurge")
    errors = rolling.amount(unavailable, f"{path}.maxUnavailable") + rolling.amount(surge, f"{path}.maxSurge")
    errors += rolling.at_most_all(unavailable, f"{path}.maxUnavailable") + rolling.at_most_all(surge, f"{path}.maxSurge")
    if rolling.number(unavailable) and rolling.number(surge):
        errors.append(field.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not rolling.number(unavailable) and not rolling.number(surge):
        errors.append(field.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def counters(status: Object, names: tuple[str, ...]) -> list[FieldError]:
    """Reject negative values of the named status fields."""
    return [error for name in names for error in not_negative(status.get(name), f"status.{name}")]


def above(status: Object, names: tuple[str, ...], limit: str, text: str) -> list[FieldError]:
    """Return an error with `text` for each named status field that exceeds the status field `limit`."""
    most = status.get(limit) or 0
    return [field.invalid(f"status.{name}", status.get(name) or 0, text) for name in names if (status.get(name) or 0) > most]


def collisions_grow(new: Object, old: Object) -> list[FieldError]:
    """Reject a status.collisionCount that is smaller than before or no longer set."""
    count, old_count = ((obj.get("status") or {}).get("collisionCount") for obj in (new, old))
    if old_count is None or (count is not None and count >= old_count):
        return []
    return [field.invalid("status.collisionCount", count or 0, "cannot be decremented")]


def validate_deployment_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status of a Deployment."""
    status = new.get("status") or {}
    numbers = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "terminatingReplicas")
    errors = counters(status, ("observedGeneration", *numbers, "collisionCount"))
    errors += above(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), "replicas", ABOVE_REPLICAS)
    errors += above(status, ("availableReplicas",), "readyReplicas", "cannot be greater than readyReplicas")
    return errors + collisions_grow(new, old)


def validate_replica_set_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status of a ReplicaSet."""
    status = new.get("status") or {}
    numbers = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    errors = counters(status, (*numbers, "observedGeneration", "terminatingReplicas"))
    errors += above(status, numbers[1:4], "replicas", ABOVE_REPLICAS)
    return errors + above(status, ("availableReplicas",), "readyReplicas", "cannot be greater than readyReplicas")


def validate_daemon_set_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status of a DaemonSet."""
    names = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
    return counters(new.get("status") or {}, names) + collisions_grow(new, old)


def validate_revision(obj: Object) -> list[FieldError]:
    """Validate a new ControllerRevision."""
    errors = not_negative(obj.get("revision"), "revision")
    data: Any = obj.get("data")
    if data is None:
        errors.append(field.required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(field.required("data", _REVISION_DATA))
    return errors


def validate_revision_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated ControllerRevision, whose data are immutable."""
    data = new.get("data")
    errors = not_negative(new.get("revision"), "revision")
    return errors if data == old.get("data") else [*errors, field.invalid("data", data, "field is immutable")]
