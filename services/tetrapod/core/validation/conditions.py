"""Validation of conditions of the common type metav1.Condition.

Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation, ValidateConditions.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.core.validation.names import errors_from
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_qualified_name, regex_text

FIELDS: Final = ("type", "status", "observedGeneration", "lastTransitionTime", "reason", "message")
"""The fields of a condition, in the order in which upstream writes them."""
_STATUSES: Final = frozenset({"True", "False", "Unknown"})
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric"
    " characters or '_,:', and must end with an alphanumeric character or '_'"
)
_REASONS: Final = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
_LONGEST_REASON: Final = 1024
_LONGEST_MESSAGE: Final = 32768


def conditions(listed: list[Object], path: str) -> list[FieldError]:
    """Validate a list of conditions, whose types must be unique.

    type, status, reason and lastTransitionTime are required. Type and reason have a valid form, and reason and message
    are not too long.

    Args:
        path: the field path of the list, for errors.
    """
    errors: list[FieldError] = []
    first: dict[str, int] = {}
    for i, condition in enumerate(listed):
        kind = condition.get("type") or ""
        if kind in first:
            errors.append(field.duplicate(f"{path}[{i}]", kind))
        first.setdefault(kind, i)
        errors += _condition(condition, f"{path}[{i}]")
    return errors


def _condition(condition: Object, path: str) -> list[FieldError]:
    kind, status, reason = condition.get("type") or "", condition.get("status") or "", condition.get("reason") or ""
    errors = [] if kind else [field.required(f"{path}.type", "is required")]
    if kind:
        errors += errors_from(is_qualified_name, kind, f"{path}.type")
    if not status:
        errors.append(field.required(f"{path}.status"))
    elif status not in _STATUSES:
        errors.append(field.not_supported(f"{path}.status", status, _STATUSES))
    if (generation := condition.get("observedGeneration") or 0) < 0:
        errors.append(field.invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero"))
    if not condition.get("lastTransitionTime"):
        errors.append(field.required(f"{path}.lastTransitionTime"))
    if len(reason.encode()) > _LONGEST_REASON:
        errors.append(field.too_long(f"{path}.reason", _LONGEST_REASON))
    if not reason:
        errors.append(field.required(f"{path}.reason"))
    else:
        errors += condition_reason(reason, f"{path}.reason")
    if len((condition.get("message") or "").encode()) > _LONGEST_MESSAGE:
        errors.append(field.too_long(f"{path}.message", _LONGEST_MESSAGE))
    return errors


def condition_reason(reason: str, path: str) -> list[FieldError]:
    """Validate the form of a reason that is set.

    Args:
        reason: the reason.
        path: its field path, for the error.
    """
    if re.fullmatch(_REASON, reason):
        return []
    return [field.invalid(path, reason, regex_text(_REASON_TEXT, _REASON, *_REASONS))]
