"""Validation of labels and of LabelSelector objects.

Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tetrapod.machinery import field, names
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.labels.selectors import Labels


def validate_label_name(name: str, path: str) -> list[FieldError]:
    """Return the errors of a label key, which must be a qualified name; [] if it is valid.

    Args:
        name: the key.
        path: the path of the field that has it, for the errors.
    """
    return [field.invalid(path, name, text) for text in names.is_qualified_name(name)]


def validate_labels(labels: Labels | None, path: str) -> list[FieldError]:
    """Return the errors of the keys and values of labels.

    They are in the order of the labels; upstream's order is random.

    Args:
        labels: the labels; None counts as none.
        path: the path of the labels, for the errors.
    """
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        errors += validate_label_name(key, path)
        errors += [field.invalid(path, value, text) for text in names.is_valid_label_value(value)]
    return errors


def validate_label_selector(
    selector: Mapping[str, Any] | None, path: str, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    """Return the errors of a LabelSelector object; [] if it is valid or None.

    Args:
        selector: the object.
        path: its path, for the errors.
        allow_invalid_values: accept invalid values in `matchExpressions`, for updates of objects that already have
            them.
    """
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels"), field.child(path, "matchLabels"))
    for i, expression in enumerate(selector.get("matchExpressions") or ()):
        at = field.index(field.child(path, "matchExpressions"), i)
        errors += validate_label_selector_requirement(expression, at, allow_invalid_values=allow_invalid_values)
    return errors


def validate_label_selector_requirement(
    expression: Mapping[str, Any], path: str, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    """Return the errors of one of `matchExpressions`: its operator, the number of its values, its key, and the values.

    Args:
        expression: the requirement.
        path: its path, for the errors.
        allow_invalid_values: do not check the values, for updates of objects that already have invalid ones.
    """
    errors: list[FieldError] = []
    op, values = expression.get("operator", ""), expression.get("values") or []
    if op in ("In", "NotIn"):
        if not values:
            errors.append(
                field.required(field.child(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'")
            )
    elif op in ("Exists", "DoesNotExist"):
        if values:
            errors.append(
                field.forbidden(
                    field.child(path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
            )
    else:
        errors.append(
            field.invalid(field.child(path, "operator"), field.TypedText(op), "not a valid selector operator")
        )
    errors += validate_label_name(expression.get("key", ""), field.child(path, "key"))
    if not allow_invalid_values:
        for i, value in enumerate(values):
            at = field.index(field.child(path, "values"), i)
            errors += [field.invalid(at, value, text) for text in names.is_valid_label_value(value)]
    return errors
