"""Columns of HorizontalPodAutoscalers.

Upstream: pkg/printers/internalversion/printers.go, printHorizontalPodAutoscaler.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.autoscaling.horizontal_pod_autoscalers.conversion import convert_autoscaler
from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of, status_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_MAX_METRICS: Final = 2
_METRIC_FIELDS: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _row(obj: Object) -> list[Any]:
    obj = convert_autoscaler(obj, "v2")  # upstream prints the internal form, regardless of the requested version
    spec, status = spec_of(obj), status_of(obj)
    target = spec.get("scaleTargetRef") or {}
    minimum = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _targets(spec.get("metrics") or [], status.get("currentMetrics") or []),
        "<unset>" if minimum is None else str(minimum),
        spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0,
        age(obj),
    ]


def _targets(metrics: list[Object], current: list[Object]) -> str:
    """Return the metrics as `current/target`, at most two and then " + 1 more...", or "<none>".

    Args:
        metrics: the metrics of the spec.
        current: those of the status, in the same order.
    """
    if not metrics:
        return NONE
    texts = [_metric(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(metrics)]
    text = ", ".join(texts[:_MAX_METRICS])
    return f"{text} + {len(texts) - _MAX_METRICS} more..." if len(texts) > _MAX_METRICS else text


def _metric(metric: Object, current: Object) -> str:
    member = _METRIC_FIELDS.get(metric.get("type", ""), "")
    metric_spec = metric.get(member) or {}
    target = metric_spec.get("target") or {}
    current_value = (current.get(member) or {}).get("current") or {}
    if target.get("averageUtilization") is not None:
        utilization = current_value.get("averageUtilization")
        text = f"{'<unknown>' if utilization is None else f'{utilization}%'}/{target['averageUtilization']}%"
    elif target.get("averageValue") is not None:
        average = " (avg)" if member in ("external", "object") else ""
        text = f"{current_value.get('averageValue') or '<unknown>'}/{target['averageValue']}{average}"
    else:
        text = f"{current_value.get('value') or '<unknown>'}/{target.get('value', '')}"
    return f"{metric_spec.get('name', '')}: {text}" if member in ("resource", "containerResource") else text


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Reference"),
        Column("Targets"),
        Column("MinPods"),
        Column("MaxPods"),
        Column("Replicas"),
        AGE,
    ),
    _row,
)
