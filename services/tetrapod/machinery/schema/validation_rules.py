"""Validation of the form of x-kubernetes-validations: required texts, known reasons and valid field paths."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.field import FieldError, child, index, invalid, not_supported, required
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema.fieldpath import PathError, resolve

REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def rule_errors(schema: Object, path: str) -> list[FieldError]:
    """Return the errors of the CEL rules of one schema: of their texts, reason and fieldPath.

    Whether the expressions compile is checked by cel_rule_errors.py.

    Args:
        schema: the schema that has the rules.
        path: its field path.
    """
    errors: list[FieldError] = []
    for i, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        at = index(child(path, "x-kubernetes-validations"), i)
        errors += _text_errors(rule, at)
        reason = rule.get("reason")
        if reason is not None and reason not in REASONS:
            errors.append(not_supported(child(at, "reason"), reason, REASONS))
        errors += _path_errors(rule.get("fieldPath") or "", schema, child(at, "fieldPath"))
    return errors


def _text_errors(rule: Object, at: str) -> list[FieldError]:
    errors = []
    text, message, expression = (rule.get(name) or "" for name in ("rule", "message", "messageExpression"))
    if not text.strip():
        errors.append(required(child(at, "rule"), "rule is not specified"))
    elif message and not message.strip():
        errors.append(invalid(child(at, "message"), message, "must be non-empty if specified"))
    elif _has_newlines(message.strip()):
        errors.append(invalid(child(at, "message"), message, "must not contain line breaks"))
    elif _has_newlines(text.strip()) and not message.strip():
        errors.append(required(child(at, "message"), "message must be specified if rule contains line breaks"))
    if expression and not expression.strip():
        errors.append(required(child(at, "messageExpression"), "messageExpression must be non-empty if specified"))
    return errors


def _path_errors(text: str, schema: Object, at: str) -> list[FieldError]:
    errors = []
    if text and not text.strip():
        errors.append(invalid(at, text, "must be non-empty if specified"))
    if _has_newlines(text):
        errors.append(invalid(at, text, "must not contain line breaks"))
    if text:
        try:
            resolve(text, schema)
        except PathError:
            errors.append(invalid(at, text, "must be a valid path"))
    return errors


def _has_newlines(text: str) -> bool:
    return "\n" in text or "\r" in text
