"""Validation of podFailurePolicy and successPolicy of a Job.

Upstream: pkg/apis/batch/validation/validation.go, validatePodFailurePolicy and validateSuccessPolicy.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.batch.jobs.indexes import count_indexes
from tetrapod.core.validation.names import not_negative, qualified_name
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

_RULES: Final = 20
_PATTERNS: Final = 20
_EXIT_CODES: Final = 255
_INDEXES_SIZE: Final = 64 * 1024
_ACTIONS: Final = ["Count", "FailIndex", "FailJob", "Ignore"]
_OPERATORS: Final = ["In", "NotIn"]
_STATUSES: Final = ["False", "True", "Unknown"]


def failure_policy(spec: Object, path: str) -> list[FieldError]:
    """Validate podFailurePolicy of a Job spec.

    Each of at most 20 rules has a known action, and either onExitCodes or up to 20 onPodConditions. The action
    FailIndex requires backoffLimitPerIndex, and a container name must be one of the pod template.

    Args:
        spec: the Job spec. A rule may refer to its containers and its backoffLimitPerIndex.
        path: the field path of the policy.
    """
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or []
    pod_spec = (spec.get("template") or {}).get("spec") or {}
    names = {c.get("name") for kind in ("containers", "initContainers") for c in pod_spec.get(kind) or ()}
    errors = [field.too_many(f"{path}.rules", len(rules), _RULES)] if len(rules) > _RULES else []
    for i, rule in enumerate(rules):
        errors += _rule(spec, rule, f"{path}.rules[{i}]", names)
    return errors


def _one_of(value: str, allowed: list[str], path: str) -> list[FieldError]:
    if not value:
        return [field.required(path, f"valid values: [{' '.join(map(go_quote, allowed))}]")]
    return [] if value in allowed else [field.not_supported(path, value, allowed)]


def _rule(spec: Object, rule: Object, path: str, names: set[Any]) -> list[FieldError]:
    action, codes, patterns = rule.get("action") or "", rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors = [field.invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")]
    else:
        errors = _one_of(action, _ACTIONS, f"{path}.action")
    if codes is not None:
        errors += _exit_codes(codes, f"{path}.onExitCodes", names)
    if len(patterns) > _PATTERNS:
        errors.append(field.too_many(f"{path}.onPodConditions", len(patterns), _PATTERNS))
    for i, pattern in enumerate(patterns):
        at = f"{path}.onPodConditions[{i}]"
        errors += qualified_name(pattern.get("type") or "", f"{at}.type") + _one_of(
            pattern.get("status") or "", _STATUSES, f"{at}.status"
        )
    if codes is not None and patterns:
        errors.append(omitted(path, "specifying both OnExitCodes and OnPodConditions is not supported"))
    if codes is None and not patterns:
        errors.append(omitted(path, "specifying one of OnExitCodes and OnPodConditions is required"))
    return errors


def omitted(path: str, detail: str) -> FieldError:
    """Return an "Invalid value" error that does not show the value.

    Args:
        path: the field path of the error.
        detail: the text of the error.
    """
    return FieldError("FieldValueInvalid", path, detail)


def _exit_codes(codes: Object, path: str, names: set[Any]) -> list[FieldError]:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    errors = _one_of(operator, _OPERATORS, f"{path}.operator")
    if (name := codes.get("containerName")) is not None and name not in names:
        text = "must be one of the container or initContainer names in the pod template"
        errors.append(field.invalid(f"{path}.containerName", name, text))
    if not values:
        errors.append(field.invalid(f"{path}.values", codes.get("values"), "at least one value is required"))
    elif len(values) > _EXIT_CODES:
        errors.append(field.too_many(f"{path}.values", len(values), _EXIT_CODES))
    repeated_indexes = repeated(values)
    for i, value in enumerate(values):
        at = f"{path}.values[{i}]"
        if operator == "In" and value == 0:
            errors.append(field.invalid(at, value, "must not be 0 for the In operator"))
        if i in repeated_indexes:
            errors.append(field.duplicate(at, value))
    if values != sorted(values):
        errors.append(field.invalid(f"{path}.values", values, "must be ordered"))
    return errors


def success_policy(spec: Object, path: str) -> list[FieldError]:
    """Validate successPolicy of a Job spec: it has 1 to 20 rules, each with succeededCount or succeededIndexes.

    Args:
        spec: the Job spec. A rule's succeededCount must not exceed its completions, and succeededIndexes must be lower.
        path: the field path of the policy.
    """
    rules = (spec.get("successPolicy") or {}).get("rules") or []
    errors: list[FieldError] = []
    if not rules:
        errors.append(
            field.required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
        )
    if len(rules) > _RULES:
        errors.append(field.too_many(f"{path}.rules", len(rules), _RULES))
    for i, rule in enumerate(rules):
        errors += _success_rule(rule, spec.get("completions") or 0, f"{path}.rules[{i}]")
    return errors


def _success_rule(rule: Object, completions: int, path: str) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    errors: list[FieldError] = []
    if count is None and indexes is None:
        errors.append(field.required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        if len(indexes) > _INDEXES_SIZE:
            errors.append(field.too_long(f"{path}.succeededIndexes", _INDEXES_SIZE))
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            errors.append(
                field.invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
            )
    if count is not None:
        at = f"{path}.succeededCount"
        errors += not_negative(count, at)
        if count > completions:
            text = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(field.invalid(at, count, text))
        if indexes is not None and count > total:
            text = (
                f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            )
            errors.append(field.invalid(at, count, text))
    return errors


def shown_failure(policy: Object) -> Object:
    """Return podFailurePolicy as Go prints upstream's internal struct, for error messages."""
    return {
        "Rules": [_shown_rule(rule) for rule in policy.get("rules") or ()] if policy.get("rules") is not None else None
    }


def _shown_rule(rule: Object) -> Object:
    codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions")
    return {
        "Action": rule.get("action") or "",
        "OnExitCodes": codes
        and {
            "ContainerName": codes.get("containerName"),
            "Operator": codes.get("operator") or "",
            "Values": codes.get("values"),
        },
        "OnPodConditions": None
        if patterns is None
        else [{"Type": pattern.get("type") or "", "Status": pattern.get("status") or ""} for pattern in patterns],
    }


def shown_success(policy: Object) -> Object:
    """Return successPolicy as Go prints upstream's internal struct, for error messages."""
    rules = [
        {"SucceededIndexes": r.get("succeededIndexes"), "SucceededCount": r.get("succeededCount")}
        for r in policy.get("rules") or ()
    ]
    return {"Rules": None if policy.get("rules") is None else rules}
