"""One metric of an autoscaler in the forms of autoscaling/v2 and of autoscaling/v1, wanted or current.

The v1 form is flat (`targetAverageValue`), the v2 form nests a metric and a target. `_PARTS` lists, per kind and in the order of
the Go struct, each v1 field and where v2 keeps it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import canonical


class Form(NamedTuple):
    """A wanted metric, or a current one."""

    key: str  # of the nested values in v2
    prefix: str  # of their names in v1
    parts: dict[str, tuple[tuple[str, str], ...]]


_NAME: Final = ("metricName", "metric.name")
_RESOURCE: Final = (("name", "name"), ("{}AverageUtilization", "averageUtilization"), ("{}AverageValue", "averageValue"))
_KINDS: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}
_REFERENCE: Final = ("kind", "name", "apiVersion")
_NEEDED: Final = {"object": "{}Value", "pods": "{}AverageValue"}
"""Quantities that v1 has even where v2 has none."""
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
    "external": (_NAME, ("metricSelector", "metric.selector"), ("{}Value", "value"), ("{}AverageValue", "averageValue")),
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
"""Every field of a metric in v1, by its name in small letters."""


def cpu_utilization(metric: Object, key: str) -> int | None:
    """The one thing that v1 has a field for."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    found: int | None = (resource.get(key) or {}).get("averageUtilization")
    return found


def to_v1(metric: Object, form: Form) -> Object:
    kind = _KINDS.get(metric.get("type", ""), "")
    out: Object = {"type": metric.get("type", "")}
    if not kind:
        return out
    source = metric.get(kind) or {}
    values = source.get(form.key) or {}
    found: Object = {}
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
            found[name] = value
    out[kind] = found
    return out


def _read(source: Object, path: str) -> Any:
    outer, _, inner = path.partition(".")
    value = source.get(outer)
    return (value or {}).get(inner) if inner else value


def to_v2(metric: Object, form: Form) -> Object:
    """
    Raises:
        ValueError: something is no quantity.
    """
    kind = _KINDS.get(metric.get("type", ""), "")
    out: Object = {"type": metric.get("type", "")}
    given = metric.get(kind) or {}
    if not kind or not given:
        return out
    source: Object = {}
    values: Object = {}
    for flat, nested in form.parts[kind]:
        value = given.get(flat.format(form.prefix))
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
    """v1 does not say which value counts: the first that is there does."""
    if "averageUtilization" in values:
        return {"type": "Utilization", **values}
    if kind == "object":
        if "averageValue" not in values:
            return {"type": "Value", **values}
        return {"type": "AverageValue", "averageValue": values["averageValue"]}
    return {"type": "AverageValue" if "averageValue" in values else "Value", **values}
