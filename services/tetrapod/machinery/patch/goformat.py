"""Values written as upstream's messages show them: Go's `%v`, `%#v` and `%T` of decoded JSON.

Clients and tests match these texts (`map: map[image:i:2] does not contain declared merge key: name`), so the patch and
apply code prints the values of a refused body through this file.
"""

from __future__ import annotations

import math
from typing import Any

from tetrapod.machinery.field import go_quote


def plain(value: Any) -> str:
    """Go's `%v`: maps sorted by key, strings bare."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case dict():
            return f"map[{' '.join(f'{k}:{plain(value[k])}' for k in sorted(value))}]"
        case list():
            return f"[{' '.join(map(plain, value))}]"
        case _:
            return str(value)


def syntax(value: Any) -> str:
    """Go's `%#v`: the value as source text."""
    match value:
        case None:
            return "interface {}(nil)"
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case str():
            return go_quote(value)
        case dict():
            return "map[string]interface {}{" + ", ".join(f"{go_quote(k)}:{syntax(value[k])}" for k in sorted(value)) + "}"
        case list():
            return "[]interface {}{" + ", ".join(map(syntax, value)) + "}"
        case _:
            return str(value)


def type_name(value: Any) -> str:
    """Go's `%T` of a decoded JSON value."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case dict():
            return "map[string]interface {}"
        case _:
            return "[]interface {}"


def json_kind(value: Any) -> str:
    """How encoding/json names the kind of a value it cannot store."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case _:
            return "array"


def go_float(value: float) -> str:
    """Go's shortest `%v`: exponents below -4 and from 21 on, at least two digits in the exponent."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    sign, digits, exponent = _shortest(value)
    point = len(digits) + exponent
    if digits == "0":
        return f"{sign}0"
    if not -4 < point <= 21:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        power = point - 1
        return f"{sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if exponent >= 0:
        return f"{sign}{digits}{'0' * exponent}"
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _shortest(value: float) -> tuple[str, str, int]:
    """Sign, significant digits without trailing zeros, and the power of ten they are multiplied by."""
    text = repr(abs(value))
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) - len(fraction)
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return sign, stripped or "0", exponent if stripped else 0
