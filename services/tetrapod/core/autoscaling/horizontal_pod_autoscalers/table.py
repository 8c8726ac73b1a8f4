"""Columns of HorizontalPodAutoscalers.

Upstream: pkg/printers/internalversion/printers.go, printHorizontalPodAutoscaler.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.autoscaling.horizontal_pod_autoscalers.conversion import without_default_metrics
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
    # Upstream prints the internal form, regardless of the requested version. That of a bookmark has no metrics.
    obj = without_default_metrics(obj)
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


def _metric(metric: Object, status: Object) -> str:
    """Return the current value and the target of a metric; a current value that is unset in a status is `<nil>`."""
    member = _METRIC_FIELDS.get(metric.get("type", ""), "")
    spec, reported = metric.get(member) or {}, status.get(member)
    target, current = spec.get("target") or {}, (reported or {}).get("current") or {}
    unset = _UNKNOWN if reported is None else _NIL
    if member in ("resource", "containerResource"):
        if target.get("averageValue") is not None:
            return f"{spec.get('name', '')}: {current.get('averageValue') or unset}/{target['averageValue']}"
        utilization, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        text = _UNKNOWN if utilization is None else f"{utilization}%"
        return f"{spec.get('name', '')}: {text}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if member == "pods":
        return f"{current.get('averageValue') or unset}/{target.get('averageValue') or _NIL}"
    if target.get("averageValue") is not None:
        return f"{current.get('averageValue') or _UNKNOWN}/{target['averageValue']} (avg)"
    return f"{current.get('value') or unset}/{target.get('value') or _NIL}"


_UNKNOWN: Final = "<unknown>"
_NIL: Final = "<nil>"
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
