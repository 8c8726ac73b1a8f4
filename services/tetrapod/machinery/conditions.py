"""Conditions in an object's status. Upstream: k8s.io/apimachinery/pkg/api/meta/conditions.go."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339


def find_condition(obj: Object, kind: str) -> Object | None:
    """Return the condition of a type, or None."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            result: Object = condition
            return result
    return None


def is_true(obj: Object, kind: str) -> bool:
    """Return whether the condition of a type is `True`."""
    condition = find_condition(obj, kind)
    return condition is not None and condition.get("status") == "True"


def set_condition(obj: Object, new: Object) -> None:
    """Add or update a condition, in place.

    `lastTransitionTime` is now by default, and changes only if the condition's status does.
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
