"""Checks of single values: strings, numbers, enums, and the words for a wrong type.

Upstream: k8s.io/kube-openapi/pkg/validation/validate (validator.go, values.go, formats.go) and .../errors/schema.go.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

import orjson

from tetrapod.machinery.field import FieldError, go_quote
from tetrapod.machinery.gofloat import go_float
from tetrapod.machinery.schema.paths import Path, text_of
from tetrapod.machinery.shapes import formats
from tetrapod.machinery.shapes.node import SchemaNode
from tetrapod.machinery.shapes.patterns import BadPattern, compile_pattern

_MAX_EXACT: Final = float((1 << 53) - 1)
_INT64: Final = 1 << 63


def composite(text: str) -> FieldError:
    """An error that upstream gives no field."""
    return FieldError("FieldValueInvalid", "<nil>", text, "")


def invalid_type(path: Path, expected: str, value: Any) -> FieldError:
    name = text_of(path)
    shown = go_quote(value) if isinstance(value, str) else orjson.dumps(value).decode()
    return FieldError("FieldValueTypeInvalid", name, f"{name} in body must be of type {expected}: {shown}", value)


def check_string(node: SchemaNode, value: str, path: Path, errors: list[FieldError]) -> None:
    """Length and pattern (the first that fails), then the format."""
    rules = node.validations
    if rules:
        error = _string_error(rules, value, path)
        if error is not None:
            errors.append(error)
    form = formats.of_type("" if node.int_or_string else node.type, node.format)
    if form and not formats.matches(form, value):
        errors.append(invalid_type(path, form, value))


def _string_error(rules: dict[str, Any], value: str, path: Path) -> FieldError | None:
    most, least, pattern = rules.get("maxLength"), rules.get("minLength"), rules.get("pattern")
    if most is not None and len(value) > most:
        text = "value is too long" if most < 0 else f"may not be more than {most} {'byte' if most == 1 else 'bytes'}"
        return FieldError("FieldValueTooLong", text_of(path), text, value)
    if least is not None and len(value) < least:
        return _invalid(path, value, f"should be at least {least} chars long")
    if pattern:
        try:
            if compile_pattern(pattern).search(value) is None:
                return _invalid(path, value, f"should match '{pattern}'")
        except BadPattern as error:
            return _invalid(path, value, f"should match '{pattern}', but pattern is invalid: {error}")
    return None


def _invalid(path: Path, value: Any, detail: str) -> FieldError:
    name = text_of(path)
    return FieldError("FieldValueInvalid", name, f"{name} in body {detail}", value)


def is_float_integer(value: float) -> bool:
    """Whether a float counts as an integer, as swag's IsFloat64AJSONInteger: nearly is enough, quotients of decimals are seldom whole."""
    if not abs(value) <= _MAX_EXACT:
        return False
    whole = round(value)
    return value == whole or abs(value - whole) < 1e-9 * abs(whole)


def check_number(node: SchemaNode, value: float, path: Path, errors: list[FieldError]) -> int:
    """The range of the type, then multipleOf, minimum and maximum. (The value is an int or a float.)"""
    if (text := _out_of_range(node, value, "Checked", path)) is not None:
        errors.append(composite(text))
    rules = node.validations
    if rules:
        _check_multiple(node, value, path, errors)
        least, most = rules.get("minimum"), rules.get("maximum")
        if least is not None:
            bound, _ = _bound(node, least, value, "Minimum boundary", path, errors)
            if value <= bound if rules.get("exclusiveMinimum") else value < bound:
                words = "greater than" if rules.get("exclusiveMinimum") else "greater than or equal to"
                errors.append(_invalid(path, value, f"should be {words} {_go_number(bound)}"))
        if most is not None:
            bound, _ = _bound(node, most, value, "Maximum boundary", path, errors)
            if value >= bound if rules.get("exclusiveMaximum") else value > bound:
                words = "less than" if rules.get("exclusiveMaximum") else "less than or equal to"
                errors.append(_invalid(path, value, f"should be {words} {_go_number(bound)}"))
    return 1


def _bound(node: SchemaNode, bound: float, value: float, name: str, path: Path, errors: list[FieldError]) -> tuple[float, bool]:
    """What the schema compares with, and whether as integers: where it fits the type, an integer meets an integer, rounded to zero."""
    if (text := _out_of_range(node, bound, name, path)) is not None:
        errors.append(composite(text))
        return float(bound), False
    if value.__class__ is not int:
        return float(bound), False
    return int(bound) if -_INT64 <= bound < _INT64 else -_INT64, True  # what amd64 makes of a float too large


def _check_multiple(node: SchemaNode, value: float, path: Path, errors: list[FieldError]) -> None:
    declared = node.validations.get("multipleOf")
    if declared is None:
        return
    factor, whole = _bound(node, declared, value, "MultipleOf", path, errors)
    if factor <= 0:
        text = f"factor MultipleOf declared for {text_of(path)} must be positive: {_go_number(factor)}"
        errors.append(FieldError("FieldValueInvalid", text_of(path), text, factor))
        return
    if whole:
        fits = value % factor == 0
    else:
        ratio = 1 / factor * value if factor < 1 else value / factor
        fits = is_float_integer(ratio)
    if not fits:
        errors.append(_invalid(path, value, f"should be a multiple of {_go_number(factor)}"))


def _out_of_range(node: SchemaNode, value: float, prefix: str, path: Path) -> str | None:
    if node.int_or_string:
        return None
    form = formats.of_type(node.type, node.format)
    if node.type == "integer":
        limit = 1 << 31 if form == "int32" else 1 << 63
        fits = float(value).is_integer() and -limit <= value < limit
    elif node.type == "number" and form == "float":
        fits = _fits_float32(value)
    else:
        return None
    if fits:
        return None
    form = f"with format {form}" if form else "(default format)"
    return f"{prefix} value must be of type {node.type} {form} in {text_of(path)}"


def _fits_float32(value: float) -> bool:
    try:
        struct.pack("f", value)
    except OverflowError:
        return False
    return math.isfinite(value)


def _go_number(value: float) -> str:
    return go_float(value) if isinstance(value, float) else str(value)


def enum_error(node: SchemaNode, value: Any, path: Path) -> FieldError | None:
    """Null equals no value of an enum, not even null."""
    assert node.enum is not None
    if any(_converted(value, allowed.__class__) == [allowed] for allowed in node.enum if allowed is not None):
        return None
    listed = ", ".join(go_quote(v if isinstance(v, str) else orjson.dumps(v).decode()) for v in node.enum)
    return FieldError("FieldValueNotSupported", text_of(path), f"supported values: {listed}", sorted_keys(value))


def sorted_keys(value: Any) -> Any:
    """As Go prints maps, in errors too."""
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)) if isinstance(value, dict | list) else value


def _converted(value: Any, kind: type) -> list[Any]:
    """The value in another one's type if Go converts them, as upstream does to compare: 1.7 becomes 1, and 97 becomes "a"."""
    if value.__class__ is kind:
        return [value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    if kind is int or kind is float:
        return [kind(value)]
    if kind is str and isinstance(value, int):
        return [chr(value if 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000 else 0xFFFD)]
    return []
