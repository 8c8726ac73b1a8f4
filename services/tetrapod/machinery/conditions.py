"""Conditions in an object's status. Upstream: k8s.io/apimachinery/pkg/api/meta/conditions.go."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339


def find_condition(obj: Object, kind: str) -> Object | None:
    """Return the first condition of `status.conditions` with the type `kind`, or None.

    It is the object's own, not a copy. Conditions that another program has stored as null are skipped.
    """
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if isinstance(condition, dict) and condition.get("type") == kind:
            result: Object = condition
            return result
    return None


def is_true(obj: Object, kind: str) -> bool:
    """Return whether the object has a condition of the type `kind` with the status `True`."""
    condition = find_condition(obj, kind)
    return condition is not None and condition.get("status") == "True"


def set_condition(obj: Object, new: Object) -> None:
    """Add a condition to `status.conditions` of an object, or update the one of the same type, in place.

    If the status of the condition stays the same, so does its `lastTransitionTime`, even if `new` has another one. In
    other cases it is that of `new`, or the current time if `new` has none.

    Args:
        obj: the object to modify.
        new: the condition, with `type` and `status`. Fields that it lacks keep their values.
    """
    new = {"lastTransitionTime": now_rfc3339(), **new}
    existing = find_condition(obj, new["type"])
    if existing is None:
        status = obj.setdefault("status", {})
        status["conditions"] = [*(status.get("conditions") or ()), new]
        return
    if existing.get("status") == new["status"]:
        del new["lastTransitionTime"]
    existing.update(new)
