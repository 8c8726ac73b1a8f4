"""Validation of LimitRange.

Upstream: pkg/apis/core/validation/validation.go, ValidateLimitRange.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.pod_resources import Amounts, amounts
from tetrapod.core.validation.names import qualified_name
from tetrapod.core.validation.quantities import container_resource_name, may_overcommit, resource_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_TYPES: Final = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_ONE: Final = Quantity.from_int(1)
_MAX_MILLI: Final = (1 << 63) // 1000


def validate(obj: Object) -> list[FieldError]:
    """Validate a LimitRange, which has at most one item per type."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{i}]", item.get("type") or ""
        errors += _type(kind, f"{path}.type")
        if kind in seen:
            errors.append(field.duplicate(f"{path}.type", kind))
        seen.add(kind)
        errors += _item(item, kind, path)
    return errors


def _type(kind: str, path: str) -> list[FieldError]:
    if errors := qualified_name(kind, path):
        return errors
    if "/" not in kind and kind not in _TYPES:
        return [field.invalid(path, kind, "must be a standard limit type or fully qualified")]
    return []


def _item(item: Object, kind: str, path: str) -> list[FieldError]:
    check = container_resource_name if kind in ("Pod", "Container") else resource_name
    errors: list[FieldError] = []
    amounts_by_part: dict[str, Amounts] = {}

    def take(part: str) -> None:
        amounts_by_part[part] = amounts(item.get(part))
        for name in amounts_by_part[part]:
            errors.extend(check(name, f"{path}.{part}[{name}]"))

    take("max")
    take("min")
    for part in ("default", "defaultRequest"):
        if kind != "Pod":
            take(part)
        elif item.get(part):
            errors.append(field.forbidden(f"{path}.{part}", "may not be specified when `type` is 'Pod'"))
    if kind == "PersistentVolumeClaim" and "storage" not in amounts_by_part["min"] and "storage" not in amounts_by_part["max"]:
        text = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(field.required(f"{path}.limits", text))
    take("maxLimitRequestRatio")
    for name in dict.fromkeys(name for part in amounts_by_part.values() for name in part):
        errors += _relations(name, {part: values[name] for part, values in amounts_by_part.items() if name in values}, path)
    return errors


def _relations(name: str, of: Amounts, path: str) -> list[FieldError]:
    """Validate the order of one resource's amounts: min, defaultRequest, default, max, and maxLimitRequestRatio."""
    low, high, limit, request, ratio = (of.get(key) for key in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio"))
    errors: list[FieldError] = []

    def ordered(a: Quantity | None, a_name: str, b: Quantity | None, b_name: str, at: str, shown: Quantity | None) -> None:
        if a is not None and b is not None and a > b:
            text = f"{a_name} value {a} is greater than {b_name} value {b}"
            errors.append(field.invalid(f"{path}.{at}[{name}]", str(shown), text))

    ordered(low, "min", high, "max", "min", low)
    ordered(low, "min", request, "default request", "defaultRequest", request)
    ordered(request, "default request", high, "max", "defaultRequest", request)
    ordered(request, "default request", limit, "default limit", "defaultRequest", request)
    ordered(low, "min", limit, "default", "default", low)
    ordered(limit, "default", high, "max", "default", high)
    if ratio is not None:
        errors += _ratio(ratio, low, high, f"{path}.maxLimitRequestRatio[{name}]")
    if limit is not None and request is not None and limit != request and not may_overcommit(name):
        text = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        errors.append(field.invalid(f"{path}.defaultRequest[{name}]", str(request), text))
    return errors


def _ratio(ratio: Quantity, low: Quantity | None, high: Quantity | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if ratio < _ONE:
        errors.append(field.invalid(path, str(ratio), f"ratio {ratio} is less than 1"))
    if low is None or high is None or low.is_zero:
        return errors
    small = max(ratio.value, low.value, high.value) < _MAX_MILLI
    requested_ratio = ratio.milli_value / 1000 if small else float(ratio.value)
    most = high.milli_value / low.milli_value if small else high.value / low.value
    if requested_ratio > most:
        errors.append(field.invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {most:f}"))
    return errors
