"""Checks of single values: strings, numbers and enums, and the errors for wrong types.

Upstream: k8s.io/kube-openapi/pkg/validation/validate (validator.go, values.go, formats.go) and .../errors/schema.go.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

import orjson

from tetrapod.machinery import string_formats
from tetrapod.machinery.error_limits import MAX_VALUE, cut
from tetrapod.machinery.field import FieldError, format_text
from tetrapod.machinery.golang.floats import go_float
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.golang.regular_expressions import BadPattern, compile_pattern, search_seconds
from tetrapod.machinery.long_work import check_time
from tetrapod.machinery.schema.path_pairs import Path, text_of
from tetrapod.machinery.schema_node import SchemaNode

_MAX_EXACT: Final = float((1 << 53) - 1)
_INT64: Final = 1 << 63


def composite(text: str) -> FieldError:
    """Return an error with a text and without a field.

    Upstream reports anyOf, oneOf, allOf, not and the range of number types in this way.
    """
    return FieldError("FieldValueInvalid", "<nil>", text, "")


def invalid_type(path: Path, expected: str, value: Any) -> FieldError:
    """Return the error for a value that does not have the expected type.

    Args:
        path: the path of the value.
        expected: the names of the types, or of the format.
        value: the value, or the name of its type, which the error quotes.
    """
    name = text_of(path)
    shown = format_text(value) if isinstance(value, str) else cut(orjson.dumps(value).decode(), MAX_VALUE)
    return FieldError("FieldValueTypeInvalid", name, f"{name} in body must be of type {expected}: {shown}", value)


def check_string(node: SchemaNode, value: str, path: Path, errors: list[FieldError]) -> None:
    """Append the errors of a string to `errors`.

    They are the first of maxLength, minLength and pattern that fails, and that of the format.

    Args:
        node: the schema.
        value: the string.
        path: the path of the value.
        errors: the list that receives the errors.

    Raises:
        TakesTooLong: this runs on the event loop, and its deadline is too near for the pattern.
    """
    rules = node.validations
    if rules:
        error = _string_error(rules, value, path)
        if error is not None:
            errors.append(error)
    if not node.format:
        return
    form = string_formats.of_type("" if node.int_or_string else node.type, node.format)
    if form and not string_formats.matches(form, value):
        errors.append(invalid_type(path, form, value))


def _string_error(rules: dict[str, Any], value: str, path: Path) -> FieldError | None:
    maximum, minimum, pattern = rules.get("maxLength"), rules.get("minLength"), rules.get("pattern")
    if maximum is not None and len(value) > maximum:
        text = (
            "value is too long"
            if maximum < 0
            else f"may not be more than {maximum} {'byte' if maximum == 1 else 'bytes'}"
        )
        return FieldError("FieldValueTooLong", text_of(path), text, value)
    if minimum is not None and len(value) < minimum:
        return _invalid(path, value, f"should be at least {minimum} chars long")
    if pattern:
        try:
            compiled = compile_pattern(pattern)
            check_time(search_seconds(compiled, value))
            if compiled.search(value) is None:
                return _invalid(path, value, f"should match '{pattern}'")
        except BadPattern as error:
            return _invalid(path, value, f"should match '{pattern}', but pattern is invalid: {error}")
    return None


def _invalid(path: Path, value: Any, detail: str) -> FieldError:
    name = text_of(path)
    return FieldError("FieldValueInvalid", name, f"{name} in body {detail}", value)


def is_float_integer(value: float) -> bool:
    """Return whether a float counts as an integer, like IsFloat64AJSONInteger of go-openapi/swag.

    A small deviation is tolerated, because quotients of decimal fractions are seldom exact. Floats beyond 2^53-1 do not
    count.
    """
    if not abs(value) <= _MAX_EXACT:
        return False
    whole = round(value)
    return value == whole or abs(value - whole) < 1e-9 * abs(whole)


def check_number(node: SchemaNode, value: float, path: Path, errors: list[FieldError]) -> int:
    """Append the errors of an int or a float to `errors`: range of the type, multipleOf, minimum and maximum.

    Args:
        node: the schema.
        value: the number.
        path: the path of the value.
        errors: the list that receives the errors.

    Returns:
        The number of passed checks, which is always 1.
    """
    if (text := _out_of_range(node, value, "Checked", path)) is not None:
        errors.append(composite(text))
    rules = node.validations
    if rules:
        _check_multiple(node, value, path, errors)
        minimum, maximum = rules.get("minimum"), rules.get("maximum")
        if minimum is not None:
            bound, _ = _bound(node, minimum, value, "Minimum boundary", path, errors)
            if value <= bound if rules.get("exclusiveMinimum") else value < bound:
                comparison = "greater than" if rules.get("exclusiveMinimum") else "greater than or equal to"
                errors.append(_invalid(path, value, f"should be {comparison} {_go_number(bound)}"))
        if maximum is not None:
            bound, _ = _bound(node, maximum, value, "Maximum boundary", path, errors)
            if value >= bound if rules.get("exclusiveMaximum") else value > bound:
                comparison = "less than" if rules.get("exclusiveMaximum") else "less than or equal to"
                errors.append(_invalid(path, value, f"should be {comparison} {_go_number(bound)}"))
    return 1


def _bound(
    node: SchemaNode, bound: float, value: float, name: str, path: Path, errors: list[FieldError]
) -> tuple[float, bool]:
    """Return the limit to compare a value with, and whether the comparison is between integers.

    An integer value is compared with the limit truncated to an integer. If the limit does not fit the type and format
    of the schema, an error is appended, and the value is compared all the same, with the limit as a float.

    Args:
        node: the schema.
        bound: the limit as declared.
        value: the value to compare.
        name: the name of the limit in the error.
        path: the path of the value.
        errors: receives the error.
    """
    if (text := _out_of_range(node, bound, name, path)) is not None:
        errors.append(composite(text))
        return float(bound), False
    if value.__class__ is not int:
        return float(bound), False
    return int(
        bound
    ) if -_INT64 <= bound < _INT64 else -_INT64, True  # amd64 converts floats beyond int64 to its minimum


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
    """Return an error text if a number does not fit the type and format of the schema, otherwise None.

    Args:
        node: the schema.
        value: the number.
        prefix: the beginning of the text, such as "Checked".
        path: the path of the value.
    """
    if node.int_or_string:
        return None
    form = string_formats.of_type(node.type, node.format)
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
    """Return None if a value equals one of the schema's enum, otherwise an error.

    Null is never equal, not even to null. Numbers are first converted to the type of the allowed
    value, as in Go.

    Args:
        node: the schema, which has an enum.
        value: the value.
        path: the path of the value.
    """
    assert node.enum is not None
    if any(_converted(value, allowed.__class__) == [allowed] for allowed in node.enum if allowed is not None):
        return None
    listed: str | None = node.compiled.get("enum")
    if listed is None:
        listed = ", ".join(go_quote(v if isinstance(v, str) else orjson.dumps(v).decode()) for v in node.enum)
        node.compiled["enum"] = listed = cut(listed, MAX_VALUE)
    return FieldError("FieldValueNotSupported", text_of(path), f"supported values: {listed}", sorted_keys(value))


def sorted_keys(value: Any) -> Any:
    """Return a deep copy of an object or list with the keys of all objects in it sorted; other values as they are.

    Go prints maps sorted, also in errors.
    """
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)) if isinstance(value, dict | list) else value


def _converted(value: Any, kind: type) -> list[Any]:
    """Return a list with the value converted to `kind` as Go converts it, or an empty list if Go cannot.

    Upstream converts before comparing: 1.7 becomes 1, and 97 becomes "a".
    """
    if value.__class__ is kind:
        return [value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    if kind is int or kind is float:
        return [kind(value)]
    if kind is str and isinstance(value, int):
        return [chr(value if 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000 else 0xFFFD)]
    return []
