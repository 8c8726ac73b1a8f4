"""Fields that are a number or a text: ports, `25%` (upstream: k8s.io/apimachinery/pkg/util/intstr)."""

from __future__ import annotations

from typing import TypeAlias

IntOrString: TypeAlias = int | str


def int_value(value: IntOrString | None) -> int:
    """The number, or that of the text; 0 where it is none (upstream: IntValue)."""
    if isinstance(value, str):
        digits = value[1:] if value[:1] in ("+", "-") else value
        return int(value) if digits.isascii() and digits.isdigit() else 0
    return value or 0


def percent_value(value: IntOrString | None) -> int | None:
    """25 of `25%`; None where it is no percentage."""
    if not isinstance(value, str) or not value.endswith("%"):
        return None
    digits = value[:-1]
    unsigned = digits[1:] if digits[:1] in ("+", "-") else digits
    return int(digits) if unsigned.isascii() and unsigned.isdigit() else None
