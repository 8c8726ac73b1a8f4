"""HorizontalPodAutoscaler between v2 (stored) and v1 (upstream: pkg/apis/autoscaling/v1/conversion.go).

v1 has one target, cpu utilisation; other metrics, their current values, conditions and behavior live in its annotations.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from tetrapod.machinery.gvk import Object

METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_OURS: Final = (METRICS, CURRENT, CONDITIONS, BEHAVIOR)


def convert_autoscaler(obj: Object, version: str) -> Object:
    """A copy in `version` ("v1" or "v2")."""
    given = obj.get("apiVersion", "").rpartition("/")[2]
    if given == version:
        return dict(obj)
    return _to_v1(obj) if version == "v1" else _to_v2(obj)


def _with_annotations(obj: Object, annotations: dict[str, str]) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return metadata


def _is_cpu_utilization(metric: Object) -> bool:
    resource = metric.get("resource") or {}
    return (
        metric.get("type") == "Resource"
        and resource.get("name") == "cpu"
        and (resource.get("target") or {}).get("averageUtilization") is not None
    )


def _to_v1(obj: Object) -> Object:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = {k: v for k, v in (obj["metadata"].get("annotations") or {}).items() if k not in _OURS}
    metrics = spec.pop("metrics", None) or []
    others: list[Object] = []
    for metric in metrics:
        if _is_cpu_utilization(metric):
            spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
        else:
            others.append(_metric_to_v1(metric))
    if others:
        annotations[METRICS] = _dump(others)
    if behavior := spec.pop("behavior", None):
        annotations[BEHAVIOR] = _dump(behavior)
    current = status.pop("currentMetrics", None) or []
    for metric in current:
        now = ((metric.get("resource") or {}).get("current") or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and (metric.get("resource") or {}).get("name") == "cpu" and now is not None:
            status["currentCPUUtilizationPercentage"] = now
    if current:
        annotations[CURRENT] = _dump([_current_to_v1(m) for m in current])
    if conditions := status.pop("conditions", None):
        annotations[CONDITIONS] = _dump(conditions)
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    return {
        "kind": obj.get("kind"),
        "apiVersion": "autoscaling/v1",
        "metadata": _with_annotations(obj, annotations),
        "spec": spec,
        "status": status,
    }


def _to_v2(obj: Object) -> Object:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    given = obj["metadata"].get("annotations") or {}
    annotations = {k: v for k, v in given.items() if k not in _OURS}
    metrics = [_metric_to_v2(m) for m in _load(given.get(METRICS), list) or []]
    cpu = spec.pop("targetCPUUtilizationPercentage", None)
    if cpu is not None:
        target = {"type": "Utilization", "averageUtilization": cpu}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    if behavior := _load(given.get(BEHAVIOR), dict):
        spec["behavior"] = behavior
    now = status.pop("currentCPUUtilizationPercentage", None)
    current = [_current_to_v2(m) for m in _load(given.get(CURRENT), list) or []]
    if current:
        status["currentMetrics"] = current
    elif now is not None:
        status["currentMetrics"] = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": now}}}]
    if conditions := _load(given.get(CONDITIONS), list):
        status["conditions"] = conditions
    status.setdefault("desiredReplicas", 0)
    return {
        "kind": obj.get("kind"),
        "apiVersion": "autoscaling/v2",
        "metadata": _with_annotations(obj, annotations),
        "spec": spec,
        "status": status,
    }


def _dump(value: Any) -> str:
    return orjson.dumps(value).decode()


def _load(text: str | None, kind: type) -> Any:
    """A broken annotation is dropped silently."""
    if not text:
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, kind) or (isinstance(found, list) and not all(isinstance(i, dict) for i in found)):
        return None
    return found


_KINDS: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}


def _metric_to_v1(metric: Object) -> Object:
    """The annotation's form is autoscaling/v1's own MetricSpec."""
    kind = _KINDS.get(metric.get("type", ""), "")
    source = metric.get(kind) or {}
    target = source.get("target") or {}
    out: Object = {"type": metric.get("type", "")}
    if kind == "object":
        found: Object = {
            "target": source.get("describedObject") or {},
            "metricName": (source.get("metric") or {}).get("name", ""),
            "targetValue": target.get("value", "0"),
        }
        if (selector := (source.get("metric") or {}).get("selector")) is not None:
            found["selector"] = selector
        if target.get("averageValue") is not None:
            found["averageValue"] = target["averageValue"]
    elif kind == "pods":
        found = {"metricName": (source.get("metric") or {}).get("name", ""), "targetAverageValue": target.get("averageValue", "0")}
        if (selector := (source.get("metric") or {}).get("selector")) is not None:
            found["selector"] = selector
    elif kind == "external":
        found = {"metricName": (source.get("metric") or {}).get("name", "")}
        if (selector := (source.get("metric") or {}).get("selector")) is not None:
            found["metricSelector"] = selector
        for ours, theirs in (("value", "targetValue"), ("averageValue", "targetAverageValue")):
            if target.get(ours) is not None:
                found[theirs] = target[ours]
    else:
        found = {"name": source.get("name", "")}
        if kind == "containerResource":
            found["container"] = source.get("container", "")
        for ours, theirs in (("averageUtilization", "targetAverageUtilization"), ("averageValue", "targetAverageValue")):
            if target.get(ours) is not None:
                found[theirs] = target[ours]
    if kind:
        out[kind] = found
    return out


def _metric_to_v2(metric: Object) -> Object:
    kind = _KINDS.get(metric.get("type", ""), "")
    source = metric.get(kind) or {}
    out: Object = {"type": metric.get("type", "")}
    if not kind or not source:
        return out
    if kind in ("object", "pods", "external"):
        identifier: Object = {"name": source.get("metricName", "")}
        selector = source.get("metricSelector" if kind == "external" else "selector")
        if selector is not None:
            identifier["selector"] = selector
        found: Object = {"metric": identifier, "target": _target_to_v2(kind, source)}
        if kind == "object":
            found["describedObject"] = source.get("target") or {}
    else:
        found = {"name": source.get("name", ""), "target": _target_to_v2(kind, source)}
        if kind == "containerResource":
            found["container"] = source.get("container", "")
    out[kind] = found
    return out


def _target_to_v2(kind: str, source: Object) -> Object:
    average = source.get("averageValue") if kind == "object" else source.get("targetAverageValue")
    if source.get("targetAverageUtilization") is not None:
        return {"type": "Utilization", "averageUtilization": source["targetAverageUtilization"]}
    if average is not None:
        return {"type": "AverageValue", "averageValue": average}
    return {"type": "Value", "value": source.get("targetValue", "0")}


def _current_to_v1(metric: Object) -> Object:
    kind = _KINDS.get(metric.get("type", ""), "")
    source = metric.get(kind) or {}
    now = source.get("current") or {}
    out: Object = {"type": metric.get("type", "")}
    if kind in ("resource", "containerResource"):
        found: Object = {"name": source.get("name", ""), "currentAverageValue": now.get("averageValue", "0")}
        if now.get("averageUtilization") is not None:
            found["currentAverageUtilization"] = now["averageUtilization"]
        if kind == "containerResource":
            found["container"] = source.get("container", "")
    else:
        found = {"metricName": (source.get("metric") or {}).get("name", "")}
        if kind == "object":
            found |= {"target": source.get("describedObject") or {}, "currentValue": now.get("value", "0")}
        elif kind == "pods":
            found["currentAverageValue"] = now.get("averageValue", "0")
        else:
            found["currentValue"] = now.get("value", "0")
            if now.get("averageValue") is not None:
                found["currentAverageValue"] = now["averageValue"]
    if kind:
        out[kind] = found
    return out


def _current_to_v2(metric: Object) -> Object:
    kind = _KINDS.get(metric.get("type", ""), "")
    source = metric.get(kind) or {}
    out: Object = {"type": metric.get("type", "")}
    now: Object = {}
    if source.get("currentAverageUtilization") is not None:
        now["averageUtilization"] = source["currentAverageUtilization"]
    if source.get("currentAverageValue") is not None:
        now["averageValue"] = source["currentAverageValue"]
    if source.get("currentValue") is not None:
        now["value"] = source["currentValue"]
    if kind in ("resource", "containerResource"):
        found: Object = {"name": source.get("name", ""), "current": now}
        if kind == "containerResource":
            found["container"] = source.get("container", "")
    else:
        found = {"metric": {"name": source.get("metricName", "")}, "current": now}
        if kind == "object":
            found["describedObject"] = source.get("target") or {}
    if kind:
        out[kind] = found
    return out
