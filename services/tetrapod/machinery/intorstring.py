"""Values that are a number or a text, such as ports and `25%`. Upstream: k8s.io/apimachinery/pkg/util/intstr."""

from __future__ import annotations

from typing import TypeAlias

IntOrString: TypeAlias = int | str


def int_value(value: IntOrString | None) -> int:
    """Return an integer as it is, a decimal text as its number, and 0 for other texts and None.

    Upstream: IntValue.
    """
    if isinstance(value, str):
        digits = value[1:] if value[:1] in ("+", "-") else value
        return int(value) if digits.isascii() and digits.isdigit() else 0
    return value or 0


def percent_value(value: IntOrString | None) -> int | None:
    """Return the number of a percentage (25 for `25%`), or None for integers, for other texts and for None."""
    if not isinstance(value, str) or not value.endswith("%"):
        return None
    digits = value[:-1]
    unsigned = digits[1:] if digits[:1] in ("+", "-") else digits
    return int(digits) if unsigned.isascii() and unsigned.isdigit() else None
