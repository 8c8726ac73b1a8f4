"""Validation of AuthorizationConfiguration.

Upstream: k8s.io/apiserver/pkg/apis/apiserver/validation/validation.go, ValidateAuthorizationConfiguration.
"""

from __future__ import annotations

import stat
from pathlib import Path

from tetrapod.auth.authorizers.configuration import MODES
from tetrapod.generic.configuration.files import file_error_text
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.durations import format_nanoseconds, parse_nanoseconds
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain

LIMIT = 64
_SECOND = 1_000_000_000


def validate(config: Object) -> list[FieldError]:
    """Return all errors of an AuthorizationConfiguration, [] if it is valid.

    There is at least one authorizer. Types are known, and only Webhook may be repeated. Names are valid and unique.
    Only type Webhook has, and requires, `webhook`, whose kubeconfig file must exist.
    """
    listed = config.get("authorizers") or []
    if not listed:
        return [field.required("authorizers", "at least one authorization mode must be defined")]
    errors: list[FieldError] = []
    types: set[str] = set()
    names: set[str] = set()
    for i, authorizer in enumerate(listed):
        path, kind, name = field.index("authorizers", i), authorizer.get("type") or "", authorizer.get("name") or ""
        if error := _type_error(kind, types, f"{path}.type"):
            errors.append(error)
            continue
        types.add(kind)
        errors += _name_errors(name, names, f"{path}.name")
        names.add(name)
        webhook = authorizer.get("webhook")
        if kind != "Webhook":
            if webhook is not None:
                errors.append(field.invalid(f"{path}.webhook", "non-null", "may only be specified when type=Webhook"))
        elif webhook is None:
            errors.append(field.required(f"{path}.webhook", "required when type=Webhook"))
        else:
            errors += _webhook_errors(webhook, path)
    return errors


def _type_error(kind: str, seen: set[str], path: str) -> FieldError | None:
    if not kind:
        return field.required(path)
    if kind not in MODES:
        return field.not_supported(path, kind, frozenset(MODES))
    return field.duplicate(path, kind) if kind in seen and kind != "Webhook" else None


def _name_errors(name: str, seen: set[str], path: str) -> list[FieldError]:
    if not name:
        return [field.required(path)]
    if name in seen:
        return [field.duplicate(path, name)]
    texts = is_dns1123_subdomain(name)
    return [field.invalid(path, name, f"authorizer name is invalid: {', '.join(texts)}")] if texts else []


def _webhook_errors(webhook: Object, path: str) -> list[FieldError]:
    """Return the errors of the webhook of an authorizer.

    The field paths in the errors are `authorizers[0].timeout` instead of `authorizers[0].webhook.timeout`, as
    upstream's.

    Args:
        webhook: the webhook.
        path: the field path of the authorizer.
    """
    conditions = webhook.get("matchConditions") or []
    errors = _duration_errors(webhook.get("timeout"), f"{path}.timeout", limit=30 * _SECOND)
    errors += _duration_errors(webhook.get("authorizedTTL"), f"{path}.authorizedTTL")
    errors += _duration_errors(webhook.get("unauthorizedTTL"), f"{path}.unauthorizedTTL")
    errors += _choice_errors(
        webhook.get("subjectAccessReviewVersion"), f"{path}.subjectAccessReviewVersion", ("v1", "v1beta1")
    )
    reviewed, where = (
        webhook.get("matchConditionSubjectAccessReviewVersion"),
        f"{path}.matchConditionSubjectAccessReviewVersion",
    )
    if reviewed:
        errors += _choice_errors(reviewed, where, ("v1",))
    elif conditions:
        errors.append(field.required(where, "required if match conditions are specified"))
    errors += _choice_errors(webhook.get("failurePolicy"), f"{path}.failurePolicy", ("NoOpinion", "Deny"))
    errors += _connection_errors(webhook.get("connectionInfo") or {}, f"{path}.connectionInfo")
    return errors + _condition_errors(conditions, f"{path}.matchConditions")


def _duration_errors(text: str | None, path: str, limit: int = 0) -> list[FieldError]:
    if not text:
        return [field.required(path)]
    nanoseconds = parse_nanoseconds(text)
    if nanoseconds < 0 or (limit and nanoseconds > limit):
        return [
            field.invalid(path, format_nanoseconds(nanoseconds), "must be > 0s and <= 30s" if limit else "must be > 0s")
        ]
    return []


def _choice_errors(value: str | None, path: str, known: tuple[str, ...]) -> list[FieldError]:
    if not value:
        return [field.required(path)]
    return [] if value in known else [field.not_supported(path, value, known)]


def _connection_errors(info: Object, path: str) -> list[FieldError]:
    kind, file, where = info.get("type") or "", info.get("kubeConfigFile"), f"{path}.kubeConfigFile"
    if not kind:
        return [field.required(f"{path}.type")]
    if kind == "InClusterConfig":
        return [field.invalid(where, file, "can only be set when type=KubeConfigFile")] if file is not None else []
    if kind != "KubeConfigFile":
        shown = {"Type": kind, "KubeConfigFile": file}
        return [field.not_supported(f"{path}.type", shown, ("InClusterConfig", "KubeConfigFile"))]
    if not file:
        return [field.required(where)]
    if not file.startswith("/"):
        return [field.invalid(where, file, "must be an absolute path")]
    try:
        mode = Path(file).stat().st_mode
    except OSError as error:
        return [field.invalid(where, file, f"error loading file: {file_error_text('stat', file, error)}")]
    return [] if stat.S_ISREG(mode) else [field.invalid(where, file, "must be a regular file")]


def _condition_errors(conditions: list[Object], path: str) -> list[FieldError]:
    if not conditions:
        return []
    if len(conditions) > LIMIT:
        return [field.too_many(path, len(conditions), LIMIT)]
    # only imported on demand, because it imports CEL
    from tetrapod.auth.authorizers.match_conditions import compile_condition

    errors: list[FieldError] = []
    seen = set()
    for i, condition in enumerate(conditions):
        where, expression = f"{field.index(path, i)}.expression", condition.get("expression") or ""
        if not expression.strip():
            errors.append(field.required(where))
            continue
        if expression in seen:
            errors.append(field.duplicate(where, expression))
            continue
        seen.add(expression)
        if error := compile_condition(expression).error:
            errors.append(field.invalid(where, expression, error))
    return errors
