"""Validation of custom resources against their schema, with upstream's messages and order of errors.

List types, embedded resources and CEL rules are validated elsewhere. Paths are tuples that are formatted only if there
is an error.

Upstream: k8s.io/kube-openapi/pkg/validation/validate (schema.go, type.go, schema_props.go, object_validator.go,
slice_validator.go), and k8s.io/apiextensions-apiserver/pkg/apiserver/validation/validation.go, which converts its
errors to field errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from tetrapod.machinery import string_formats
from tetrapod.machinery.error_limits import MAX_ERRORS
from tetrapod.machinery.field import UNCOUNTED, FieldError, distinct
from tetrapod.machinery.schema.combinations import Combinations
from tetrapod.machinery.schema.correlation import TYPE_META, Correlation
from tetrapod.machinery.schema.path_pairs import Path, text_of
from tetrapod.machinery.schema.value_checks import (
    check_number,
    check_string,
    enum_error,
    invalid_type,
    is_float_integer,
)
from tetrapod.machinery.schema_node import SchemaNode

Validator: TypeAlias = Callable[[Any, Path, list[FieldError], Correlation | None], int]
"""A function that appends errors to the list and returns how many checks passed; anyOf uses that number to select the
best failure.

If there is a correlation (on update), errors of values below it that did not change are tolerated.
"""

_NAMES: Final = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_FORMATS: Final = {int: "int64", float: "float64"}


def validate(node: SchemaNode, obj: Any, path: str = "", correlation: Correlation | None = None) -> list[FieldError]:
    """Return the errors of a value, without duplicates; [] if it matches its schema.

    Validation ends after about MAX_ERRORS errors. The list then ends with UNCOUNTED, a placeholder for further errors
    whose number is unknown.

    Args:
        node: the schema.
        obj: the value.
        path: a prefix for the fields of the errors.
        correlation: the correlation with the existing object on update; errors of unchanged values are tolerated.

    Upstream: Result.AddErrors.
    """
    errors: list[FieldError] = []
    validator(node)(obj, (), errors, None)
    if errors and correlation is not None:  # unchanged values are only searched for if there are errors
        errors = []
        _ratcheted(validator(node), obj, (), errors, correlation)
    if len(errors) > MAX_ERRORS:
        errors.append(UNCOUNTED)
    errors = distinct(errors) if len(errors) > 1 else errors
    if not path:
        return errors
    return [error if error.field == "<nil>" else replace(error, field=joined(path, error.field)) for error in errors]


def _ratcheted(check: Validator, value: Any, path: Path, errors: list[FieldError], correlation: Correlation) -> int:
    """Validate a value with `check`, and append its errors to `errors` unless the value did not change.

    Args:
        check: the validator of the value's schema.
        value: the new value.
        path: the path of the value.
        errors: the list that receives the errors.
        correlation: the correlation of the new value with the old one.

    Returns:
        The number of checks that passed.

    Upstream: apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go, ratchetingValueValidator.
    """
    value_errors: list[FieldError] = []
    passed = check(value, path, value_errors, correlation)
    if value_errors and not correlation.unchanged:
        errors += value_errors
    return passed


def joined(path: str, field: str) -> str:
    """Return `path` and `field` joined with a dot, or `path` alone if `field` is "".

    Args:
        path: the field path of the validated value, such as `status` or `default`.
        field: the path of a field within that value, such as `replicas`. A dot at its beginning is removed. For an item
            of a list it is `[0]`, which gives `default.[0]`, as upstream.
    """
    return f"{path}.{field.removeprefix('.')}" if field else path


def validator(node: SchemaNode) -> Validator:
    """Return the function that validates values against a schema. It is compiled once and cached in the node.

    It takes a value, its path, a list that receives the errors, and a correlation with the old value or None. It
    returns the number of checks that passed.
    """
    compiled: Validator | None = node.compiled.get("validate")
    if compiled is None:
        compiled = node.compiled["validate"] = _compile(node)
    return compiled


def _compile(node: SchemaNode) -> Validator:
    rules = node.validations
    combined = Combinations(rules, validator) if rules.keys() & {"allOf", "anyOf", "oneOf", "not"} else None
    has_enum = node.enum is not None
    allowed = _allowed_types(node)
    check_type = _type_check(node, allowed)
    check_object = _object_check(node)
    check_list = _list_check(node)

    def validate_value(value: Any, path: Path, errors: list[FieldError], correlation: Correlation | None) -> int:
        kind = value.__class__
        passed = 1 if _NAMES[kind] in allowed else check_type(value, path, errors)
        if value is not None:
            passed += 1 if combined is None else combined.check(value, path, errors)
            if kind is str:
                check_string(node, value, path, errors)
            elif kind is dict:
                passed += check_object(value, path, errors, correlation)
            elif kind is list:
                passed += check_list(value, path, errors, correlation)
            elif kind is not bool:
                passed += check_number(node, value, path, errors)
        if has_enum and (error := enum_error(node, value, path)) is not None:
            errors.append(error)
        return passed + 1

    return validate_value


def _allowed_types(node: SchemaNode) -> tuple[str, ...]:
    return ("integer", "string") if node.int_or_string else (node.type,) if node.type else ()


def _type_check(node: SchemaNode, allowed: tuple[str, ...]) -> Callable[[Any, Path, list[FieldError]], int]:
    """Return the function that checks the type of a value whose JSON type is not one of `allowed`."""
    expected = ",".join(allowed)
    form = string_formats.of_type("" if node.int_or_string else node.type, node.format)
    textual = bool(form) and "number" not in allowed and "integer" not in allowed

    def check(value: Any, path: Path, errors: list[FieldError]) -> int:
        name = _NAMES[value.__class__]
        if not expected and not form:
            return 0
        if value is None:
            if node.nullable or not expected:
                return 1
            errors.append(invalid_type(path, expected, "null"))
            return 0
        if name == "number" and "integer" in allowed and is_float_integer(value):
            return 1
        if name == "integer" and "number" in allowed:
            return 1
        if name in ("string", "array"):
            if textual:  # upstream checks only the format of them, and no format applies to lists
                return 1
        elif form:
            errors.append(invalid_type(path, form, _FORMATS.get(value.__class__, "")))
            return 0
        errors.append(invalid_type(path, expected, name))
        return 0

    return check


def _object_check(node: SchemaNode) -> Validator:
    rules = node.validations
    minimum, maximum = rules.get("minProperties"), rules.get("maxProperties")
    properties, additional, required = node.properties, node.additional_properties, node.required

    def check(value: Any, path: Path, errors: list[FieldError], correlation: Correlation | None) -> int:
        size = len(value)
        if minimum is not None and size < minimum:
            name = text_of(path)
            errors.append(
                FieldError("FieldValueInvalid", name, f"{name} in body should have at least {minimum} properties", size)
            )
        if maximum is not None and size > maximum:
            errors.append(_too_many(path, size, maximum))
        passed = 0
        for key, item in value.items():
            if len(errors) > MAX_ERRORS:
                return passed
            child = properties.get(key)
            if child is not None:
                at: Path = (path, key)
            elif additional is not None:  # upstream adds a dot before the key also at the root
                child, at = additional, (path, key if path else f".{key}")
            else:
                continue
            item_correlation = None if correlation is None or (not path and key in TYPE_META) else correlation.key(key)
            if item_correlation is None:
                passed += validator(child)(item, at, errors, None)
            else:
                passed += _ratcheted(validator(child), item, at, errors, item_correlation)
        errors.extend(
            FieldError("FieldValueRequired", text_of((path, key)), "") for key in required if key not in value
        )
        return passed

    return check


def _list_check(node: SchemaNode) -> Validator:
    rules = node.validations
    minimum, maximum, items = rules.get("minItems"), rules.get("maxItems"), node.items

    def check(value: Any, path: Path, errors: list[FieldError], correlation: Correlation | None) -> int:
        passed = 1
        if items is not None:
            check_item = validator(items)
            for index, item in enumerate(value):
                if len(errors) > MAX_ERRORS:
                    return passed
                item_correlation = None if correlation is None else correlation.index(index)
                if item_correlation is None:
                    passed += check_item(item, (path, index), errors, None)
                else:
                    passed += _ratcheted(check_item, item, (path, index), errors, item_correlation)
        size = len(value)
        if minimum is not None and size < minimum:
            name = text_of(path)
            errors.append(
                FieldError("FieldValueInvalid", name, f"{name} in body should have at least {minimum} items", size)
            )
        if maximum is not None and size > maximum:
            errors.append(_too_many(path, size, maximum))
        return passed

    return check


def _too_many(path: Path, size: int, limit: int) -> FieldError:
    return FieldError(
        "FieldValueTooMany", text_of(path), f"must have at most {limit} {'item' if limit == 1 else 'items'}", size
    )
