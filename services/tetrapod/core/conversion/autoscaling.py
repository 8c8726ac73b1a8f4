"""HorizontalPodAutoscaler between v2 (stored) and v1 (upstream: pkg/apis/autoscaling/v1/conversion.go).

v1 has one target, cpu utilisation; other metrics, their current values, conditions and behavior live in its annotations, in
the order of the Go structs. How metrics are written there is in `autoscaling_metrics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from tetrapod.core.conversion import autoscaling_metrics as metrics
from tetrapod.core.defaults.autoscaling import default_metrics
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
    """A copy in `version` ("v1" or "v2")."""
    given = obj.get("apiVersion", "").rpartition("/")[2]
    if given == version:
        return dict(obj)
    return _to_v1(obj) if version == "v1" else _to_v2(obj)


def default_autoscaler_v1(obj: Object) -> None:
    """What upstream does on the way to its internal form and back: defaults, and annotations that do not parse vanish."""
    spec = obj.setdefault("spec", {})
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    canonical = _to_v1(_to_v2(obj))
    if obj.get("status") is None:
        canonical.pop("status")
    obj.clear()
    obj.update(canonical)


def without_v1_annotations(obj: Object) -> None:
    """v2 has fields for what they say, and knows them not (upstream: DropRoundTripHorizontalPodAutoscalerAnnotations)."""
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
    others: list[Object] = []
    for metric in spec.pop("metrics", None) or ():
        if (percent := metrics.cpu_utilization(metric, "target")) is not None:
            spec["targetCPUUtilizationPercentage"] = percent
        else:
            others.append(metrics.to_v1(metric, metrics.SPEC))
    if others:
        annotations[METRICS] = _dump(others)
    if behavior := spec.pop("behavior", None):
        annotations[BEHAVIOR] = _dump({key: _rules_to_v1(behavior.get(_small(key))) for key in ("ScaleUp", "ScaleDown")})
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
    return _made("v1", obj, annotations, spec, status)


def _made(version: str, obj: Object, annotations: dict[str, str], spec: Object, status: Object) -> Object:
    metadata = _with_annotations(obj, annotations)
    return {"kind": obj.get("kind"), "apiVersion": f"autoscaling/{version}", "metadata": metadata, "spec": spec, "status": status}


def _condition(condition: Object) -> Object:
    found = {key: condition[key] for key in _CONDITION if condition.get(key)}
    found.setdefault("lastTransitionTime", None)
    return {key: found[key] for key in _CONDITION if key in found}


def _small(name: str) -> str:
    return name[:1].lower() + name[1:]


def _rules_to_v1(rules: Object | None) -> Object | None:
    """Scaling rules as upstream's internal struct prints."""
    if rules is None:
        return None
    found: Object = {name: rules.get(_small(name)) for name in _RULES}
    if found["Policies"] is not None:
        found["Policies"] = [{name: p.get(_small(name)) for name in _POLICY} for p in found["Policies"]]
    return found


def _to_v2(obj: Object) -> Object:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    given = obj["metadata"].get("annotations") or {}
    annotations = {k: v for k, v in given.items() if k not in _OURS}
    wanted = _metrics(given.get(METRICS), metrics.SPEC)
    cpu = spec.pop("targetCPUUtilizationPercentage", None)
    if cpu is not None:
        wanted.append({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": cpu}}})
    spec["metrics"] = wanted
    default_metrics(spec)
    if behavior := _load(given.get(BEHAVIOR), dict, _BEHAVIOR_NAMES):
        spec["behavior"] = _wire(behavior)  # its defaults come after validation, when upstream reads what it stored
    now = status.pop("currentCPUUtilizationPercentage", None)
    current = _metrics(given.get(CURRENT), metrics.STATUS)
    if not current and now is not None:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": now}}}]
    status["currentMetrics"] = current or None
    if conditions := _load(given.get(CONDITIONS), list, _CONDITION_NAMES):
        status["conditions"] = conditions
    status.setdefault("desiredReplicas", 0)
    return _made("v2", obj, annotations, spec, status)


def _wire(value: Any) -> Any:
    """Names on the wire for those of internal structs, nulls left out."""
    if isinstance(value, dict):
        return {_small(key): _wire(item) for key, item in value.items() if item is not None}
    return [_wire(item) for item in value] if isinstance(value, list) else value


def _dump(value: Any) -> str:
    return orjson.dumps(value).decode()


def _metrics(text: str | None, form: metrics.Form) -> list[Object]:
    try:
        return [metrics.to_v2(metric, form) for metric in _load(text, list, metrics.V1_NAMES) or ()]
    except ValueError:
        return []


def _load(text: str | None, kind: type, names: Mapping[str, str]) -> Any:
    """A broken annotation is dropped silently. `names`: of fields, by their names in small letters."""
    if not text:
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, kind) or (isinstance(found, list) and not all(isinstance(i, dict) for i in found)):
        return None
    return _spelled(found, names)


def _spelled(value: Any, names: Mapping[str, str]) -> Any:
    """Go's encoding/json fills fields however their names are capitalised; labels are no fields."""
    if isinstance(value, list):
        return [_spelled(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    named = {names.get(key.lower(), key): item for key, item in value.items()}
    return {key: item if key == "matchLabels" else _spelled(item, names) for key, item in named.items()}
