"""Defaults of HorizontalPodAutoscalers. Upstream: pkg/apis/autoscaling/v2/defaults.go."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object

_SCALE_UP: Final[Object] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Final[Object] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def default_autoscaler_v2(obj: Object) -> None:
    """Set the defaults of an autoscaler in v2 in place.

    They are minReplicas 1, cpu utilization of 80 % as the metric, and the rules of a behavior that is set.
    """
    spec = obj.setdefault("spec", {})
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    default_metrics(spec)
    if (behavior := spec.get("behavior")) is not None:
        spec["behavior"] = default_behavior(behavior)


def default_metrics(spec: Object) -> None:
    """Set empty metrics of a spec to 80 % of cpu utilization, in place."""
    if not spec.get("metrics"):
        spec["metrics"] = [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ]


def default_behavior(behavior: Object) -> Object:
    """Return a copy of the behavior with scaleUp and scaleDown, each with upstream's default for every unset rule."""
    return {
        **behavior,
        "scaleUp": _rules(behavior.get("scaleUp"), _SCALE_UP),
        "scaleDown": _rules(behavior.get("scaleDown"), _SCALE_DOWN),
    }


def _rules(given: Object | None, defaults: Object) -> Object:
    rules = {key: value for key, value in (given or {}).items() if value is not None}
    for key, value in defaults.items():
        if key not in rules:
            rules[key] = [dict(p) for p in value] if isinstance(value, list) else value
    return rules
