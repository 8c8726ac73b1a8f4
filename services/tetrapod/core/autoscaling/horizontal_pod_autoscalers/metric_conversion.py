"""Conversion of one metric of an autoscaler, target or current, between autoscaling/v2 and autoscaling/v1.

v1 is flat (`targetAverageValue`), v2 nests a metric and a target. `_PARTS` lists each v1 field with its path in v2, by
type of metric and in the order of the Go struct.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import canonical


class Form(NamedTuple):
    """The field names of metrics in the spec (`SPEC`: target values) or in the status (`STATUS`: current values).

    Attributes:
        key: the field of a v2 metric that contains the values: "target" or "current".
        prefix: the beginning of the names of value fields in v1, such as "target" of targetAverageValue.
        parts: the v1 fields with their paths in v2, by type of metric; `{}` in a field is replaced by the prefix.
    """

    key: str
    prefix: str
    parts: dict[str, tuple[tuple[str, str], ...]]


_NAME: Final = ("metricName", "metric.name")
_RESOURCE: Final = (
    ("name", "name"),
    ("{}AverageUtilization", "averageUtilization"),
    ("{}AverageValue", "averageValue"),
)
_KINDS: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}
_REFERENCE: Final = ("kind", "name", "apiVersion")
_NEEDED: Final = {"object": "{}Value", "pods": "{}AverageValue"}
"""Quantities that v1 always has, even if v2 has none."""
_PARTS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "object": (
        ("target", "describedObject"),
        _NAME,
        ("{}Value", "value"),
        ("selector", "metric.selector"),
        ("averageValue", "averageValue"),
    ),
    "pods": (_NAME, ("{}AverageValue", "averageValue"), ("selector", "metric.selector")),
    "resource": _RESOURCE,
    "containerResource": (*_RESOURCE, ("container", "container")),
    "external": (
        _NAME,
        ("metricSelector", "metric.selector"),
        ("{}Value", "value"),
        ("{}AverageValue", "averageValue"),
    ),
}
_VALUES: Final = frozenset({"averageUtilization", "averageValue", "value"})
SPEC: Final = Form("target", "target", _PARTS)
STATUS: Final = Form("current", "current", _PARTS)
_SELECTOR: Final = ("matchLabels", "matchExpressions", "key", "operator", "values")
V1_NAMES: Final = {
    name.lower(): name
    for name in (
        *("type", *_KINDS.values(), *_REFERENCE, *_SELECTOR),
        *(flat.format(form.prefix) for form in (SPEC, STATUS) for parts in _PARTS.values() for flat, _ in parts),
    )
}
"""All fields of a v1 metric, by their lower-case names."""


def cpu_utilization(metric: Object, key: str) -> int | None:
    """Return averageUtilization of a v2 metric of the resource cpu, the only one that v1 has a field for.

    Args:
        key: "target" or "current".

    Returns:
        None if it is another metric or has no averageUtilization.
    """
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    utilization: int | None = (resource.get(key) or {}).get("averageUtilization")
    return utilization


def to_v1(metric: Object, form: Form) -> Object:
    """Return a v2 metric in the flat form of v1; only its `type` if that is unknown.

    Args:
        metric: the v2 metric, which is not modified.
        form: `SPEC` for a metric of spec.metrics, `STATUS` for one of status.currentMetrics.
    """
    kind = _KINDS.get(metric.get("type", ""), "")
    out: Object = {"type": metric.get("type", "")}
    if not kind:
        return out
    source = metric.get(kind) or {}
    values = source.get(form.key) or {}
    fields: Object = {}
    for flat, nested in form.parts[kind]:
        value = values.get(nested) if nested in _VALUES else _read(source, nested)
        name = flat.format(form.prefix)
        if value is None and flat in (_NEEDED.get(kind), "metricName", "name"):
            value = "0" if "{}" in flat else ""
        if value is None and kind == "external" and form is STATUS and flat == "{}Value":
            value = "0"
        if value is None and form is STATUS and flat == "{}AverageValue" and kind in ("resource", "containerResource"):
            value = "0"
        if nested == "describedObject":
            value = {key: value[key] for key in _REFERENCE if value and value.get(key)}
        if value is not None:
            fields[name] = value
    out[kind] = fields
    return out


def _read(source: Object, path: str) -> Any:
    """Return the value at a path of one or two fields, such as "metric.name", or None."""
    outer, _, inner = path.partition(".")
    value = source.get(outer)
    return (value or {}).get(inner) if inner else value


def to_v2(metric: Object, form: Form) -> Object:
    """Return a v1 metric in the nested form of v2; only its `type` if that is unknown or the source is empty.

    Args:
        metric: the v1 metric, which is not modified.
        form: `SPEC` for a metric of spec.metrics, `STATUS` for one of status.currentMetrics.

    Raises:
        ValueError: a quantity is invalid.
    """
    kind = _KINDS.get(metric.get("type", ""), "")
    out: Object = {"type": metric.get("type", "")}
    flat_metric = metric.get(kind) or {}
    if not kind or not flat_metric:
        return out
    source: Object = {}
    values: Object = {}
    for flat, nested in form.parts[kind]:
        value = flat_metric.get(flat.format(form.prefix))
        outer, _, inner = nested.partition(".")
        if nested in _VALUES:
            if value is not None:
                values[nested] = value if nested == "averageUtilization" else canonical(value)
        elif inner:
            if value is not None:
                source.setdefault(outer, {})[inner] = value
        else:
            source[outer] = value if value is not None else ({} if nested == "describedObject" else "")
    source[form.key] = _target(kind, values) if form is SPEC else values
    out[kind] = source
    return out


def _target(kind: str, values: Object) -> Object:
    """Return the v2 target of a v1 metric, with the field `type`, which v1 does not have.

    The type follows from the first value that is set: averageUtilization, averageValue, value; without any it is Value.
    If a metric of kind `object` has averageValue, the target has no value: v1 requires one, so it is only a
    placeholder.

    Args:
        kind: the field of the metric's source, such as `object` or `pods`.
        values: the target's averageUtilization, averageValue and value, as far as they are set.
    """
    if "averageUtilization" in values:
        return {"type": "Utilization", **values}
    if kind == "object":
        if "averageValue" not in values:
            return {"type": "Value", **values}
        return {"type": "AverageValue", "averageValue": values["averageValue"]}
    return {"type": "AverageValue" if "averageValue" in values else "Value", **values}
