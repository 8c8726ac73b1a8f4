"""Validation of maxUnavailable and maxSurge of rolling updates, which are numbers or percentages.

Upstream: pkg/apis/apps/validation/validation.go.
"""

from __future__ import annotations

from typing import TypeAlias

from tetrapod.core.validation.names import NOT_NEGATIVE
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.integers import decimal_number
from tetrapod.machinery.names import is_valid_percent

IntOrString: TypeAlias = int | str
"""A number or a text, such as ports and `25%`. Upstream: k8s.io/apimachinery/pkg/util/intstr."""


def amount(value: IntOrString | None, path: str) -> list[FieldError]:
    """Validate a non-negative number or a percentage such as "25%"; None is accepted.

    Args:
        path: the field path of the value, for the errors.
    """
    if isinstance(value, str):
        return [field.invalid(path, field.TypedText(value), text) for text in is_valid_percent(value)]
    return [field.invalid(path, value, NOT_NEGATIVE)] if (value or 0) < 0 else []


def _percent(value: IntOrString | None) -> int | None:
    """Return the number of a percentage (25 for `25%`), or None for integers, for other texts and for None."""
    return _int_value(value[:-1]) if isinstance(value, str) and not is_valid_percent(value) else None


def number(value: IntOrString | None) -> int:
    """Return 5 for 5 and "5", 25 for "25%", and 0 for None and invalid texts."""
    percent = _percent(value)
    return _int_value(value) if percent is None else percent


def at_most_all(value: IntOrString | None, path: str) -> list[FieldError]:
    """Reject a percentage above 100%; numbers and None are accepted.

    Args:
        path: the field path of the value, for the errors.
    """
    percent = _percent(value)
    return (
        [field.invalid(path, value, "must not be greater than 100%")] if percent is not None and percent > 100 else []
    )


def _int_value(value: IntOrString | None) -> int:
    """Return an integer as it is, a decimal text as its number, and 0 for other texts and None.

    A number that does not fit into 64 bits becomes the nearest one that does.

    Upstream: IntValue.
    """
    if not isinstance(value, str):
        return value or 0
    digits = value[1:] if value[:1] in ("+", "-") else value
    if not (digits.isascii() and digits.isdigit()):
        return 0
    magnitude = decimal_number(digits)
    return max(-magnitude, -(1 << 63)) if value.startswith("-") else min(magnitude, (1 << 63) - 1)
