"""Validation of the health of volumes, which is reported in the status of pods and of PersistentVolumeClaims.

Upstream: pkg/apis/core/validation/validation.go, validateVolumeHealthConditions, and the rules that upstream declares
beside the fields.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation.conditions import condition_reason
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated, same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_STATES: Final = frozenset({"DataLoss", "Degraded", "Inaccessible"})
_MOST: Final = 16
_LONGEST_REASON: Final = 256
_LONGEST_MESSAGE: Final = 1024
_FIELDS: Final = ("status", "reason", "message")
_POD_FIELDS: Final = ("name", "healthConditions", "lastTransitionTime")


def reasons(health: Object, path: str) -> list[FieldError]:
    """Validate the form of the reasons of health conditions, by upstream's hand-written rules.

    Args:
        health: the object with the field `healthConditions`.
        path: its field path.
    """
    errors: list[FieldError] = []
    for i, condition in enumerate(health.get("healthConditions") or ()):
        if reason := condition.get("reason"):
            errors += condition_reason(reason, f"{path}.healthConditions[{i}].reason")
    return errors


def declared(health: Object, stored: Object, path: str) -> list[FieldError]:
    """Validate health conditions by the rules that upstream declares beside the fields.

    There are at most 16, unique by status and reason. Both are required, and the status is known. Unchanged conditions
    are not validated again.

    Args:
        health: the object with the field `healthConditions`.
        stored: the stored one, or {}.
        path: its field path.
    """
    listed, path = health.get("healthConditions") or [], f"{path}.healthConditions"
    old = stored.get("healthConditions") or []
    if same(listed, old):
        return []
    if len(listed) > _MOST:
        return [field.too_many(path, len(listed), _MOST)]
    by_key = {_key(condition): condition for condition in old}
    errors = [
        field.duplicate(f"{path}[{i}]", {name: listed[i][name] for name in _FIELDS if name in listed[i]})
        for i in sorted(repeated(map(_key, listed)))
    ]
    for i, condition in enumerate(listed):
        if not same(condition, by_key.get(_key(condition))):
            errors += _condition(condition, f"{path}[{i}]")
    return errors


def _key(condition: Object) -> tuple[str, str]:
    return condition.get("status") or "", condition.get("reason") or ""


def _condition(condition: Object, path: str) -> list[FieldError]:
    status, reason = _key(condition)
    errors: list[FieldError] = []
    if not status:
        errors.append(field.required(f"{path}.status"))
    elif status not in _STATES:
        errors.append(field.not_supported(f"{path}.status", status, _STATES))
    if not reason:
        errors.append(field.required(f"{path}.reason"))
    elif len(reason.encode()) > _LONGEST_REASON:
        errors.append(field.too_long(f"{path}.reason", _LONGEST_REASON))
    if len((condition.get("message") or "").encode()) > _LONGEST_MESSAGE:
        errors.append(field.too_long(f"{path}.message", _LONGEST_MESSAGE))
    return errors


def pod_volumes(listed: list[Object], volumes: list[Object]) -> list[FieldError]:
    """Validate the health of the volumes of a pod by upstream's hand-written rules: the pod has these volumes.

    Args:
        listed: the field status.volumeHealth.
        volumes: the volumes of the pod.
    """
    names = {volume.get("name") for volume in volumes}
    errors: list[FieldError] = []
    for i, health in enumerate(listed):
        path, name = f"status.volumeHealth[{i}]", health.get("name") or ""
        if name and name not in names:
            errors.append(field.not_found(f"{path}.name", name))
        errors += reasons(health, path)
    return errors


def declared_pod_volumes(listed: list[Object], stored: list[Object]) -> list[FieldError]:
    """Validate the health of the volumes of a pod by the rules that upstream declares: names are set and unique.

    Args:
        listed: the field status.volumeHealth.
        stored: the stored one.
    """
    if same(listed, stored):
        return []
    path, by_name = "status.volumeHealth", {health.get("name") or "": health for health in stored}
    errors = [
        field.duplicate(f"{path}[{i}]", {name: listed[i][name] for name in _POD_FIELDS if name in listed[i]})
        for i in sorted(repeated([health.get("name") or "" for health in listed]))
    ]
    for i, health in enumerate(listed):
        name = health.get("name") or ""
        if not name:
            errors.append(field.required(f"{path}[{i}].name"))
        errors += declared(health, by_name.get(name) or {}, f"{path}[{i}]")
    return errors
