"""Validation of HorizontalPodAutoscaler.

Upstream: pkg/apis/autoscaling/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.core.validation import quantities
from tetrapod.core.validation.names import dns_label, errors_from, not_negative
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_path_segment_name

BELOW_MINIMUM: Final = "must be greater than or equal to `minReplicas`"
_LONGEST_WINDOW: Final = 3600
_LONGEST_PERIOD: Final = 1800
_SELECT: Final = frozenset({"Max", "Min", "Disabled"})
_POLICIES: Final = frozenset({"Pods", "Percent"})
_TARGETS: Final = frozenset({"Utilization", "Value", "AverageValue"})
_NO_ZERO: Final = "must specify at least one Object or External metric to support scaling to zero replicas"
_DESCRIBED_VERSION: Final = "describedObject.apiVersion"
_RAW_OR_UTILIZATION: Final = "must set either a target raw value or a target utilization"


def validate(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Validate the spec of a HorizontalPodAutoscaler.

    maxReplicas is required, positive, and not below minReplicas. scaleTargetRef, metrics and the rules of behavior are
    valid. An invalid apiVersion that is already stored is accepted: that of scaleTargetRef while its kind and
    apiVersion are unchanged, those of object metrics if any stored metric has one.

    Args:
        old: the stored object; None on create.
    """
    spec = obj.get("spec") or {}
    min_replicas, max_replicas = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors: list[FieldError] = []
    if min_replicas is not None and max_replicas < min_replicas:
        errors.append(field.invalid("spec.maxReplicas", max_replicas, BELOW_MINIMUM))
    target, old_target = spec.get("scaleTargetRef") or {}, ((old or {}).get("spec") or {}).get("scaleTargetRef") or {}
    path = "spec.scaleTargetRef.apiVersion"
    errors += _names(target, "spec.scaleTargetRef")
    target_unchanged = old is not None and all(
        (target.get(key) or "") == (old_target.get(key) or "") for key in ("kind", "apiVersion")
    )
    if not target_unchanged and (text := _api_version(target, grouped=target.get("kind") != "ReplicationController")):
        errors.append(field.invalid(path, target.get("apiVersion") or "", text))
    errors += _metrics(spec.get("metrics") or [], min_replicas, described_before=_described(old))
    for name in ("scaleUp", "scaleDown"):
        if (rules := (spec.get("behavior") or {}).get(name)) is not None:
            errors += _rules(rules, f"spec.behavior.{name}")
    errors += _least(min_replicas, ((old or {}).get("spec") or {}).get("minReplicas"))
    if not max_replicas:
        errors.append(field.required("spec.maxReplicas"))
    elif max_replicas < 1:
        errors.append(field.invalid("spec.maxReplicas", max_replicas, "must be greater than or equal to 1"))
    return errors


def _names(target: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in ("kind", "name"):
        if value := target.get(key):
            errors += errors_from(is_path_segment_name, value, f"{path}.{key}")
        else:
            errors.append(field.required(f"{path}.{key}"))
    return errors


def _api_version(target: Object, *, grouped: bool) -> str:
    """Return an error text for the apiVersion of a reference, or "" if it is valid.

    Args:
        grouped: whether the apiVersion must name an API group.
    """
    version = target.get("apiVersion") or ""
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    return "apiVersion must specify API group" if grouped and not version.rpartition("/")[0] else ""


def _described(obj: Object | None) -> list[Object]:
    """Return the describedObject of each metric of type Object, {} where it is missing; [] if `obj` is None."""
    metrics = ((obj or {}).get("spec") or {}).get("metrics") or ()
    return [(m.get("object") or {}).get("describedObject") or {} for m in metrics if m.get("type") == "Object"]


def _least(value: int | None, old: int | None) -> list[FieldError]:
    if feature_gates.enabled("HPAScaleToZero") or old == 0:
        return not_negative(value, "spec.minReplicas")
    if value is not None and value < 1:
        return [field.invalid("spec.minReplicas", value, "must be greater than or equal to 1")]
    return []


def _metrics(metrics: list[Object], least: int | None, described_before: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, metric in enumerate(metrics):
        errors += _metric(metric, f"spec.metrics[{i}]")
    if least == 0 and not any(m.get("type") in ("Object", "External") for m in metrics):
        errors.append(field.forbidden("spec.metrics", _NO_ZERO))
    if any(_api_version(target, grouped=False) for target in described_before):
        return [error for error in errors if not error.field.endswith(_DESCRIBED_VERSION)]
    return errors


def _metric(metric: Object, path: str) -> list[FieldError]:
    kind = metric.get("type") or ""
    errors: list[FieldError] = []
    if not kind:
        errors.append(field.required(f"{path}.type", "must specify a metric source type"))
    if kind not in _KINDS:
        errors.append(field.not_supported(f"{path}.type", kind, frozenset(_KINDS)))
    present = [name for name in _SOURCES if metric.get(name) is not None]
    if present:
        errors += _SOURCES[present[0]](metric[present[0]], f"{path}.{present[0]}")
    expected = _KINDS.get(kind, "")
    if expected and expected not in present:
        errors.append(field.required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) > 1:
        text = "must populate the given metric source only"
        errors += [field.forbidden(f"{path}.{name}", text) for name in present if name != expected]
    return errors


def _identifier(source: Object, path: str) -> list[FieldError]:
    name = (source.get("metric") or {}).get("name") or ""
    if not name:
        return [field.required(f"{path}.metric.name", "must specify a metric name")]
    return errors_from(is_path_segment_name, name, f"{path}.metric.name")


def _target(source: Object, path: str) -> list[FieldError]:
    target, at = source.get("target") or {}, f"{path}.target"
    kind = target.get("type") or ""
    errors = [] if kind else [field.required(f"{at}.type", "must specify a metric target type")]
    if kind not in _TARGETS:
        errors.append(
            field.invalid(f"{at}.type", field.TypedText(kind), "must be either Utilization, Value, or AverageValue")
        )
    amounts = {
        key: quantities.quantity(target[key]) for key in ("value", "averageValue") if target.get(key) is not None
    }
    errors += [
        field.invalid(f"{at}.{key}", str(amount), "must be positive")
        for key, amount in amounts.items()
        if amount.sign != 1
    ]
    if (percent := target.get("averageUtilization")) is not None and percent < 1:
        errors.append(field.invalid(f"{at}.averageUtilization", percent, "must be greater than 0"))
    return errors


def _object(source: Object, path: str) -> list[FieldError]:
    described = source.get("describedObject") or {}
    errors = _names(described, f"{path}.describedObject")
    if text := _api_version(described, grouped=False):
        errors.append(field.invalid(f"{path}.{_DESCRIBED_VERSION}", described["apiVersion"], text))
    errors += _identifier(source, path) + _target(source, path)
    return errors + _needs_value(source, path, "must set either a target value or averageValue")


def _needs_value(source: Object, path: str, text: str) -> list[FieldError]:
    target = source.get("target") or {}
    if target.get("value") is None and target.get("averageValue") is None:
        return [field.required(f"{path}.target.averageValue", text)]
    return []


def _external(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    errors = _identifier(source, path) + _target(source, path)
    errors += _needs_value(source, path, "must set either a target value for metric or a per-pod target")
    if target.get("value") is not None and target.get("averageValue") is not None:
        text = "may not set both a target value for metric and a per-pod target"
        errors.append(field.forbidden(f"{path}.target.value", text))
    return errors


def _pods(source: Object, path: str) -> list[FieldError]:
    errors = _identifier(source, path) + _target(source, path)
    if (source.get("target") or {}).get("averageValue") is None:
        errors.append(field.required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return errors


def _resource(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("name") else [field.required(f"{path}.name", "must specify a resource name")]
    return errors + _utilization(source, path)


def _utilization(source: Object, path: str) -> list[FieldError]:
    target = source.get("target") or {}
    raw, percent = target.get("averageValue"), target.get("averageUtilization")
    errors = _target(source, path)
    if raw is None and percent is None:
        errors.append(field.required(f"{path}.target.averageUtilization", _RAW_OR_UTILIZATION))
    if raw is not None and percent is not None:
        text = "may not set both a target raw value and a target utilization"
        errors.append(field.forbidden(f"{path}.target.averageValue", text))
    return errors


def _container_resource(source: Object, path: str) -> list[FieldError]:
    if name := source.get("name"):
        errors = quantities.container_resource_name(name, f"{path}.name")
    else:
        errors = [field.required(f"{path}.name", "must specify a resource name")]
    if container := source.get("container"):
        errors += dns_label(container, f"{path}.container")
    else:
        errors.append(field.required(f"{path}.container", "must specify a container"))
    return errors + _utilization(source, path)


_SOURCES: Final[dict[str, Callable[[Any, str], list[FieldError]]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}
_KINDS: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}


def _rules(rules: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (window := rules.get("stabilizationWindowSeconds")) is not None:
        at = f"{path}.stabilizationWindowSeconds"
        if window < 0:
            errors.append(field.invalid(at, window, "must be greater than or equal to zero"))
        if window > _LONGEST_WINDOW:
            errors.append(field.invalid(at, window, f"must be less than or equal to {_LONGEST_WINDOW}"))
    if (select := rules.get("selectPolicy")) is not None and select not in _SELECT:
        errors.append(field.not_supported(f"{path}.selectPolicy", select, _SELECT))
    policies = rules.get("policies") or []
    if not policies:
        errors.append(field.required(f"{path}.policies", "must specify at least one Policy"))
    for i, policy in enumerate(policies):
        errors += _policy(policy, f"{path}.policies[{i}]")
    if (tolerance := rules.get("tolerance")) is not None:
        errors += quantities.not_negative(quantities.quantity(tolerance), f"{path}.tolerance")
    return errors


def _policy(policy: Object, path: str) -> list[FieldError]:
    kind, value, period = policy.get("type") or "", policy.get("value") or 0, policy.get("periodSeconds") or 0
    errors = [] if kind in _POLICIES else [field.not_supported(f"{path}.type", kind, _POLICIES)]
    if value <= 0:
        errors.append(field.invalid(f"{path}.value", value, "must be greater than zero"))
    if period <= 0:
        errors.append(field.invalid(f"{path}.periodSeconds", period, "must be greater than zero"))
    if period > _LONGEST_PERIOD:
        errors.append(
            field.invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {_LONGEST_PERIOD}")
        )
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Reject negative currentReplicas and desiredReplicas, and conditions with a negative observedGeneration.

    Nothing else in the status is validated.

    Args:
        new: the HorizontalPodAutoscaler in the update of the status.
        old: the stored one, which is not used.
    """
    status = new.get("status") or {}
    errors: list[FieldError] = []
    for i, condition in enumerate(status.get("conditions") or ()):
        errors += not_negative(condition.get("observedGeneration"), f"status.conditions[{i}].observedGeneration")
    return errors + [
        e for name in ("currentReplicas", "desiredReplicas") for e in not_negative(status.get(name), f"status.{name}")
    ]
