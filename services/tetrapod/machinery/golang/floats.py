"""Floats as Go's fmt formats them with `%v`, and strconv with 'g' and the shortest precision."""

from __future__ import annotations

import math


def go_float(value: float) -> str:
    """Format a float as Go's `%v` does.

    Numbers below 1e-4 and from 1e6 on have an exponent of at least two digits (`1e+06`).
    """
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    sign, digits, exponent = _shortest(value)
    point = len(digits) + exponent
    if digits == "0":
        return f"{sign}0"
    if not -4 < point <= 6:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        power = point - 1
        return f"{sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if exponent >= 0:
        return f"{sign}{digits}{'0' * exponent}"
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _shortest(value: float) -> tuple[str, str, int]:
    """Return the sign, the significant digits, and the power of ten by which they are multiplied.

    The sign is "" or "-". The digits have no leading and no trailing zeros, and are "0" for zero.

    Args:
        value: a finite number.
    """
    text = repr(abs(value))
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) - len(fraction)
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return sign, stripped or "0", exponent if stripped else 0
