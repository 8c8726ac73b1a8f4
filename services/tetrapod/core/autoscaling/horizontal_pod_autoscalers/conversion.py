"""Conversion of HorizontalPodAutoscaler between v2 (stored) and v1.

v1 has a single target, cpu utilization. Other metrics, their current values, conditions and behavior are JSON in its
annotations, with fields in the order of the Go structs. `metric_conversion` converts the metrics.
Upstream: pkg/apis/autoscaling/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from tetrapod.core.autoscaling.horizontal_pod_autoscalers import metric_conversion as metrics
from tetrapod.core.autoscaling.horizontal_pod_autoscalers.defaults import default_metrics
from tetrapod.machinery.gvk import Object

METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_OURS: Final = frozenset(
    {
        METRICS,
        CURRENT,
        CONDITIONS,
        BEHAVIOR,
        "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
        "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
    }
)
_CONDITION: Final = ("type", "status", "lastTransitionTime", "reason", "message")
_RULES: Final = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY: Final = ("Type", "Value", "PeriodSeconds")
_CONDITION_NAMES: Final = {name.lower(): name for name in _CONDITION}
_BEHAVIOR_NAMES: Final = {name.lower(): name for name in ("ScaleUp", "ScaleDown", *_RULES, *_POLICY)}


def convert_autoscaler(obj: Object, version: str) -> Object:
    """Return a copy of the autoscaler in `version` ("v1" or "v2"), in v2 with the default metrics.

    The copy may share nested objects.
    """
    if _version_of(obj) == version:
        return dict(obj)
    return _to_v1(obj) if version == "v1" else _to_v2(obj)


def without_default_metrics(obj: Object) -> Object:
    """Return a copy of the autoscaler in v2 without setting defaults. The copy may share nested objects."""
    return dict(obj) if _version_of(obj) == "v2" else _as_v2(obj)


def _version_of(obj: Object) -> str:
    api_version: str = obj.get("apiVersion", "")
    return api_version.rpartition("/")[2]


def default_autoscaler_v1(obj: Object) -> None:
    """Set the defaults of a v1 autoscaler, in place, and drop annotations with v2 fields that cannot be parsed.

    v1 holds metrics, behavior and conditions of v2 in annotations such as `autoscaling.alpha.kubernetes.io/metrics`.
    The metrics get v2's default too. Upstream's conversion to the internal type and back does the same.
    """
    spec = obj.setdefault("spec", {})
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    canonical = _to_v1(_to_v2(obj))
    if obj.get("status") is None:
        canonical.pop("status")
    obj.clear()
    obj.update(canonical)


def without_v1_annotations(obj: Object) -> None:
    """Remove from a v2 autoscaler, in place, the annotations in which v1 holds fields of v2.

    Upstream: DropRoundTripHorizontalPodAutoscalerAnnotations.
    """
    annotations = obj["metadata"].get("annotations") or {}
    if not _OURS.isdisjoint(annotations):
        obj["metadata"] = _with_annotations(obj, {k: v for k, v in annotations.items() if k not in _OURS})


def _with_annotations(obj: Object, annotations: dict[str, str]) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return metadata


def _to_v1(obj: Object) -> Object:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = {k: v for k, v in (obj["metadata"].get("annotations") or {}).items() if k not in _OURS}
    other_metrics: list[Object] = []
    for metric in spec.pop("metrics", None) or ():
        if (percent := metrics.cpu_utilization(metric, "target")) is not None:
            spec["targetCPUUtilizationPercentage"] = percent
        else:
            other_metrics.append(metrics.to_v1(metric, metrics.SPEC))
    if other_metrics:
        annotations[METRICS] = _dump(other_metrics)
    if behavior := spec.pop("behavior", None):
        annotations[BEHAVIOR] = _dump(
            {key: _rules_to_v1(behavior.get(_lower_first(key))) for key in ("ScaleUp", "ScaleDown")}
        )
    current = status.pop("currentMetrics", None) or []
    for metric in current:
        if (percent := metrics.cpu_utilization(metric, "current")) is not None:
            status["currentCPUUtilizationPercentage"] = percent
    if current:
        annotations[CURRENT] = _dump([metrics.to_v1(metric, metrics.STATUS) for metric in current])
    if conditions := status.pop("conditions", None):
        annotations[CONDITIONS] = _dump([_condition(c) for c in conditions])
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    return _autoscaler("v1", obj, annotations, spec, status)


def _autoscaler(version: str, obj: Object, annotations: dict[str, str], spec: Object, status: Object) -> Object:
    """Return an autoscaler in `version` with the given parts.

    Args:
        obj: the source of its kind and of its metadata except annotations.
        annotations: all annotations of the result.
        spec: its spec.
        status: its status.
    """
    metadata = _with_annotations(obj, annotations)
    return {
        "kind": obj.get("kind"),
        "apiVersion": f"autoscaling/{version}",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _condition(condition: Object) -> Object:
    """Return a condition with its fields in the order of the Go struct; empty ones are left out.

    A missing lastTransitionTime becomes null.
    """
    fields = {key: condition[key] for key in _CONDITION if condition.get(key)}
    fields.setdefault("lastTransitionTime", None)
    return {key: fields[key] for key in _CONDITION if key in fields}


def _lower_first(name: str) -> str:
    """Return the name with a lower-case first letter."""
    return name[:1].lower() + name[1:]


def _rules_to_v1(rules: Object | None) -> Object | None:
    """Return scaling rules as Go encodes upstream's internal struct: by Go's field names, unset ones as null.

    Args:
        rules: the v2 rules, or None, for which the result is None.
    """
    if rules is None:
        return None
    encoded: Object = {name: rules.get(_lower_first(name)) for name in _RULES}
    if encoded["Policies"] is not None:
        encoded["Policies"] = [{name: p.get(_lower_first(name)) for name in _POLICY} for p in encoded["Policies"]]
    return encoded


def _to_v2(obj: Object) -> Object:
    converted = _as_v2(obj)
    default_metrics(converted["spec"])
    return converted


def _as_v2(obj: Object) -> Object:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    v1_annotations = obj["metadata"].get("annotations") or {}
    annotations = {k: v for k, v in v1_annotations.items() if k not in _OURS}
    metric_specs = _metrics(v1_annotations.get(METRICS), metrics.SPEC)
    cpu = spec.pop("targetCPUUtilizationPercentage", None)
    if cpu is not None:
        metric_specs.append(
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": cpu}},
            }
        )
    spec["metrics"] = metric_specs
    if behavior := _load(v1_annotations.get(BEHAVIOR), dict, _BEHAVIOR_NAMES):
        # defaults come after validation, when upstream reads the stored object
        spec["behavior"] = _with_json_names(behavior)
    current_utilization = status.pop("currentCPUUtilizationPercentage", None)
    current = _metrics(v1_annotations.get(CURRENT), metrics.STATUS)
    if not current and current_utilization is not None:
        current = [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": current_utilization}}}
        ]
    status["currentMetrics"] = current or None
    if conditions := _load(v1_annotations.get(CONDITIONS), list, _CONDITION_NAMES):
        status["conditions"] = conditions
    status.setdefault("desiredReplicas", 0)
    if not status.get("currentReplicas"):  # v2 omits the zero that v1 shows
        status.pop("currentReplicas", None)
    return _autoscaler("v2", obj, annotations, spec, status)


def _with_json_names(value: Any) -> Any:
    """Return a copy of scaling rules in the form of `_rules_to_v1` with JSON field names and without nulls."""
    if isinstance(value, dict):
        return {_lower_first(key): _with_json_names(item) for key, item in value.items() if item is not None}
    return [_with_json_names(item) for item in value] if isinstance(value, list) else value


def _dump(value: Any) -> str:
    return orjson.dumps(value).decode()


def _metrics(text: str | None, form: metrics.Form) -> list[Object]:
    """Return the metrics in the text of an annotation as v2, or [] if it is None or invalid.

    Args:
        form: whether they are target or current metrics.
    """
    try:
        return [metrics.to_v2(metric, form) for metric in _load(text, list, metrics.V1_NAMES) or ()]
    except ValueError:
        return []


def _load(text: str | None, kind: type, names: Mapping[str, str]) -> Any:
    """Parse the JSON of an annotation and correct the case of its field names.

    Args:
        text: the annotation, or None if it is not set.
        kind: the expected type, dict, or list for a list of objects.
        names: field names by their lower-case form.

    Returns:
        None if the annotation is not set, invalid or of another type, as upstream ignores it.
    """
    if not text:
        return None
    try:
        decoded = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(decoded, kind) or (isinstance(decoded, list) and not all(isinstance(i, dict) for i in decoded)):
        return None
    return _spelled(decoded, names)


def _spelled(value: Any, names: Mapping[str, str]) -> Any:
    """Return a copy with corrected case of field names, which Go's encoding/json ignores, except in matchLabels.

    Args:
        names: field names by their lower-case form.
    """
    if isinstance(value, list):
        return [_spelled(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    members = {names.get(key.lower(), key): item for key, item in value.items()}
    return {key: item if key == "matchLabels" else _spelled(item, names) for key, item in members.items()}
