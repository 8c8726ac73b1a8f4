"""Validation of the request policies of device capacities.

A policy says how much of a shared capacity one request may consume.

Upstream: pkg/apis/resource/validation, validateRequestPolicy.
"""

from __future__ import annotations

import itertools
from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity, decimal_text

_FRACTIONS: Final = "DRAFractionalCapacityRange"
_MOST_VALUES: Final = 10
_BOTH: Final = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
_LARGEST: Final = Quantity.of((1 << 63) - 1)
_NANO: Final = 10**9


def capacity(given: Object, path: str, *, shared: bool) -> list[FieldError]:
    """Validate the request policy of one device capacity.

    It has either validValues or validRange, none above the capacity's value, and a default that satisfies them.

    Args:
        given: an entry of the device's `capacity`: its value and requestPolicy.
        path: its field path, for the errors.
        shared: whether the device sets allowMultipleAllocations; without it no request policy is allowed.
    """
    policy, path = given.get("requestPolicy"), f"{path}.requestPolicy"
    if policy is None:
        return []
    if not shared:
        return [field.forbidden(path, "allowMultipleAllocations must be true")]
    values, within = policy.get("validValues") or [], policy.get("validRange")
    if values and within is not None:
        return [field.forbidden(path, _BOTH)]
    largest = Quantity.of(given.get("value") or "0")
    kind = "validValues" if values else "validRange"
    if not values and within is None:
        return []
    if policy.get("default") is None:
        return [field.required(f"{path}.default", f"required when {kind} is defined")]
    default = Quantity.of(policy["default"])
    if values:
        return _values([Quantity.of(value) for value in values], default, largest, f"{path}.validValues")
    return _range(within, default, largest, f"{path}.validRange")


def _values(values: list[Quantity], default: Quantity, largest: Quantity, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, (value_before, following) in enumerate(itertools.pairwise(values)):
        if value_before > following:
            errors.append(field.invalid(f"{path}[{i + 1}]", str(following), "values must be sorted in ascending order"))
    if len(values) > _MOST_VALUES:
        errors.append(field.too_many(path, len(values), _MOST_VALUES))
    else:
        for i, value in enumerate(values):
            if value > largest:
                errors.append(
                    field.invalid(f"{path}[{i}]", str(value), f"option is larger than capacity value: {largest}")
                )
        keys = [_key(value) for value in values]
        errors += [field.duplicate(f"{path}[{i}]", keys[i]) for i in sorted(repeated(keys))]
    if default not in values or len(values) > _MOST_VALUES:
        errors.append(field.invalid(path, str(default), "default value is not valid according to the requestPolicy"))
    return errors


def _key(value: Quantity) -> str:
    """Return the text by which values are compared: in whole units, unless fractions are enabled."""
    if not feature_gates.enabled(_FRACTIONS):
        return str(value.value)
    return decimal_text(str(value))


def _range(within: Object, default: Quantity, largest: Quantity, path: str) -> list[FieldError]:
    if within.get("min") is None:
        return [field.required(f"{path}.min", "required when validRange is defined")]
    lowest = Quantity.of(within["min"])
    highest = Quantity.of(within["max"]) if within.get("max") is not None else None
    step = Quantity.of(within["step"]) if within.get("step") is not None else None
    errors = _bounds(lowest, highest, default, largest, path)
    named = {"default": default, "min": lowest, "max": highest, "step": step}
    fine = feature_gates.enabled(_FRACTIONS) and any(q is not None and q.nano % _NANO for q in named.values())
    if fine:
        small = [(n, q) for n, q in named.items() if q is not None and q.nano % 10**6]
        if small:
            return errors + [
                field.invalid(f"{path}.{n}", str(q), "value cannot be represented as a milli value") for n, q in small
            ]
    if step is None:
        return errors
    return errors + _steps(step, lowest, highest, default, largest, path, named, fine=fine)


def _bounds(
    lowest: Quantity, highest: Quantity | None, default: Quantity, largest: Quantity, path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    if lowest > largest:
        errors.append(field.invalid(f"{path}.min", str(lowest), f"min is larger than capacity value: {largest}"))
    if default < lowest:
        errors.append(field.invalid(f"{path}.default", str(default), f"default is less than min: {lowest}"))
    if highest is None:
        return errors
    if lowest > highest:
        errors.append(field.invalid(f"{path}.max", str(lowest), f"min is larger than max: {highest}"))
    if highest > largest:
        errors.append(field.invalid(f"{path}.max", str(highest), f"max is larger than capacity value: {largest}"))
    if default > highest:
        errors.append(field.invalid(f"{path}.default", str(default), f"default is more than max: {highest}"))
    return errors


def _steps(
    step: Quantity,
    lowest: Quantity,
    highest: Quantity | None,
    default: Quantity,
    largest: Quantity,
    path: str,
    named: dict[str, Quantity | None],
    *,
    fine: bool,
) -> list[FieldError]:
    """Validate the step of a range: default and maximum must be the minimum plus a multiple of it.

    Args:
        step: the step.
        lowest: the minimum of the range.
        highest: the maximum of the range; None if it is not set.
        default: the default of the request policy.
        largest: the capacity, which one step above the minimum may not exceed.
        path: the field path of the range, for the errors.
        named: the quantities of the range and the default.
        fine: whether the calculation is made in thousandths, because one of them has a fraction. Without, they must be
            non-negative and fit into 64 bits.
    """
    at = f"{path}.step"
    if step.sign <= 0:
        return [field.invalid(at, str(step), "must be greater than zero")]
    errors: list[FieldError] = []
    if (added := lowest + step) > largest:
        errors.append(field.invalid(at, str(step), f"one step {added} is larger than capacity value: {largest}"))
    unsafe: list[FieldError] = []
    for name, quantity in () if fine else named.items():
        if quantity is not None and quantity.sign < 0:
            unsafe.append(field.invalid(f"{path}.{name}", str(quantity), "must be greater than or equal to 0"))
        elif quantity is not None and quantity > _LARGEST:  # `value` wraps
            unsafe.append(field.invalid(f"{path}.{name}", str(quantity), f"must not be larger than {_LARGEST}"))
    if unsafe:
        return errors + unsafe
    amount = _milli_value if fine else _whole_value
    for value in (default, highest):
        if value is not None and (amount(value) - amount(lowest)) % amount(step):
            text = f"value is not a multiple of a given step ({step}) from ({lowest})"
            errors.append(field.invalid(at, str(value), text))
    return errors


def _milli_value(quantity: Quantity) -> int:
    return quantity.milli_value


def _whole_value(quantity: Quantity) -> int:
    return quantity.value
