"""Validation of Evictions and of their status.

Upstream: pkg/apis/lifecycle/validation/validation.go, ValidateEviction and ValidateEvictionStatus.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.lifecycle.eviction_requests import INTENT
from tetrapod.core.lifecycle.evictions.responders import MAX_RESPONDERS, Progress, responders
from tetrapod.core.lifecycle.targets import MAX_LISTED, STATUS_FIELDS, TARGET, condition_of, missing_name
from tetrapod.core.podspec.eviction_responders import HIGHEST_PRIORITY
from tetrapod.core.validation import declared
from tetrapod.core.validation.conditions import FIELDS, conditions
from tetrapod.core.validation.declared import (
    Field,
    Type,
    at_least,
    at_most,
    max_length,
    one_of,
    prefixed_label_key,
)
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

SPEC: Final = Type({"target": TARGET})
_FINAL: Final = ("TargetEvicted", "Failed")
_NAME: Final = Field((prefixed_label_key,), required=True)
_ONCE: Final = Field(no_unset=True, no_modify=True)
_TARGET_RESPONDER: Final = Type(
    {
        "name": _NAME,
        "priority": Field(
            (at_most(HIGHEST_PRIORITY), at_least(0)), pointer=True, required=True, no_unset=True, no_modify=True
        ),
        "state": Field((one_of("Inactive", "Active", "Interrupted", "Canceled", "Completed"),), required=True),
    }
)
_RESPONDER: Final = Type(
    {
        "name": _NAME,
        "startTime": _ONCE,
        "completionTime": _ONCE,
        "message": Field((max_length(4000),), pointer=True),
    }
)
STATUS: Final = Type(
    {
        **STATUS_FIELDS,
        "requesters": Field(items=Type({"name": _NAME, "intent": INTENT}), key="name", max_items=MAX_LISTED),
        "targetResponders": Field(items=_TARGET_RESPONDER, key="name", max_items=MAX_RESPONDERS),
        "responders": Field(items=_RESPONDER, key="name", max_items=MAX_RESPONDERS),
    }
)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new Eviction by the rules of `SPEC`: the target is a pod with a name and a UID."""
    return missing_name(obj) + declared.validate(SPEC, obj.get("spec") or {}, None, "spec", update=False)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated Eviction by the rules of `SPEC`: the target, its only field, is immutable."""
    return declared.validate(SPEC, new.get("spec") or {}, old.get("spec") or {}, "spec", update=True)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate a new status by the rules of `STATUS`, of all conditions, and of `responders`.

    The conditions TargetEvicted and Failed stay once they are true.
    """
    status, old_status = new.get("status") or {}, old.get("status") or {}
    listed = status.get("conditions")
    errors = conditions(listed or [], "status.conditions")
    ended = {kind: (condition_of(status, kind) or {}).get("status") == "True" for kind in _FINAL}
    for condition in old_status.get("conditions") or ():
        kind = condition.get("type") or ""
        if kind in _FINAL and _reverted(condition, condition_of(status, kind)):
            shown = None if listed is None else [{key: each[key] for key in FIELDS if key in each} for each in listed]
            text = f"{kind} condition status cannot be reverted"
            errors.append(field.invalid("status.conditions", shown, text))
            ended[kind] = True
    errors += responders(status, old_status, Progress(evicted=ended["TargetEvicted"], failed=ended["Failed"]))
    return errors + declared.validate(STATUS, status, old_status, "status", update=True)


def _reverted(old: Object, new: Object | None) -> bool:
    """Return whether a final condition that was true is gone, false, or has another reason."""
    if old.get("status") != "True":
        return False
    return new is None or new.get("status") == "False" or new.get("reason") != old.get("reason")
