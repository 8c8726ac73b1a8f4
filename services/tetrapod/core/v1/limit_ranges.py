"""The definition of LimitRanges, with their strategy, defaults and validation.

Upstream: pkg/apis/core/validation/validation.go, ValidateLimitRange; pkg/registry/core/limitrange/strategy.go;
pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

import uuid
from typing import Final

from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec.pod_resources import Amounts, amounts, round_up
from tetrapod.core.validation.names import qualified_name
from tetrapod.core.validation.quantities import container_resource_name, may_overcommit, resource_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_TYPES: Final = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_ONE: Final = Quantity.from_int(1)
_MAX_MILLI: Final = (1 << 63) // 1000


def definition() -> ResourceDefinition:
    """Return the resource definition of limitranges: versions, strategy, subresources and columns."""
    strategy = LimitRangeStrategy(
        defaults=set_defaults,
        allow_create_on_update=True,
        validator=validate,
        revalidates_generate_name="before finalizers",
    )
    return builtin("", "limitranges", strategy)


class LimitRangeStrategy(KindStrategy):
    """A strategy that gives a LimitRange without a name a random UUID as name."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = str(uuid.uuid4())


def set_defaults(obj: Object) -> None:
    """Complete `default` and `defaultRequest` of Container limits, and round quantities up to a thousandth, in place.

    `default` is completed from `max`, then `defaultRequest` from `default` and `min`.
    """
    for item in (obj.get("spec") or {}).get("limits") or ():
        for bound in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            if quantities := item.get(bound):
                round_up(quantities)
        if item.get("type") != "Container":
            continue
        limits = dict(item.get("default") or {})
        for name, value in (item.get("max") or {}).items():
            limits.setdefault(name, value)
        requests = dict(item.get("defaultRequest") or {})
        for name, value in limits.items():
            requests.setdefault(name, value)
        for name, value in (item.get("min") or {}).items():
            requests.setdefault(name, value)
        if limits:
            item["default"] = limits
        if requests:
            item["defaultRequest"] = requests


def validate(obj: Object) -> list[FieldError]:
    """Validate a LimitRange: the types, which must not repeat, and the amounts of each item.

    Names of resources are valid, and the amounts of a resource are consistent (`_relations`). Pods have no defaults,
    and claims need a minimum or maximum of storage.
    """
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{i}]", field.TypedText(item.get("type") or "")
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
    if (
        kind == "PersistentVolumeClaim"
        and "storage" not in amounts_by_part["min"]
        and "storage" not in amounts_by_part["max"]
    ):
        text = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(field.required(f"{path}.limits", text))
    take("maxLimitRequestRatio")
    for name in dict.fromkeys(name for part in amounts_by_part.values() for name in part):
        errors += _relations(
            name, {part: values[name] for part, values in amounts_by_part.items() if name in values}, path
        )
    return errors


def _relations(name: str, bounds: Amounts, path: str) -> list[FieldError]:
    """Validate the amounts of one resource: min ≤ defaultRequest ≤ default ≤ max, and maxLimitRequestRatio.

    Args:
        name: the resource, such as "cpu".
        bounds: the amounts of this resource, by "min", "max", "default", "defaultRequest" and "maxLimitRequestRatio".
        path: the field path of the LimitRange item.
    """
    low, high, limit, request, ratio = (
        bounds.get(key) for key in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
    )
    errors: list[FieldError] = []

    def ordered(
        a: Quantity | None, a_name: str, b: Quantity | None, b_name: str, at: str, shown: Quantity | None
    ) -> None:
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
