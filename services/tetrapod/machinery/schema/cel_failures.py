"""The errors of CEL rules: of a rule that is not met, and of one that cannot be evaluated."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.machinery.field import FieldError, duplicate, forbidden, invalid, required
from tetrapod.machinery.gvk import Object

_UNMATCHED: Final = "call arguments did not match a supported operator, function or macro signature for rule"


def _rule_text(rule: Object) -> str:
    return (rule.get("message") or rule.get("rule") or "").strip()


def message_of(rule: Object) -> str:
    """Return the text for a rule that is not met.

    Args:
        rule: the entry of x-kubernetes-validations.
    """
    message: str = rule.get("message") or ""
    return message.strip() if message else f"failed rule: {_rule_text(rule)}"


def problem_of(error: Exception, rule: Object) -> str:
    """Return the text for a rule that cannot be evaluated.

    Args:
        error: the error of the evaluation.
        rule: the entry of x-kubernetes-validations.
    """
    text = str(error)
    if text.startswith("no such overload"):
        return f"'{text}': {_UNMATCHED}: {_rule_text(rule)}"
    if text.startswith("operation cancelled: actual cost limit exceeded"):
        return (
            f"'{text}': no further validation rules will be run due to call cost exceeds limit for rule: "
            f"{_rule_text(rule)}"
        )
    return f"{text} evaluating rule: {_rule_text(rule)}"


def failure(reason: str | None, at: str, value: Any, detail: str, *, shown: bool) -> FieldError:
    """Return the field error for a failed rule, of the type that the rule's `reason` names.

    Args:
        reason: the reason, or None for "invalid".
        at: the field path.
        value: the value that failed.
        detail: the message.
        shown: whether the error quotes the value.
    """
    match reason:
        case "FieldValueForbidden":
            return forbidden(at, detail)
        case "FieldValueRequired":
            return required(at, detail)
        case "FieldValueDuplicate":
            return duplicate(at, value) if shown else FieldError("FieldValueDuplicate", at, "")
    return invalid(at, value, detail) if shown else FieldError("FieldValueInvalid", at, detail)
