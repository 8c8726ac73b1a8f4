"""Conditions in an object's status, one of each type (upstream: k8s.io/apimachinery/pkg/api/meta/conditions.go)."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now_rfc3339


def find_condition(obj: Object, kind: str) -> Object | None:
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            found: Object = condition
            return found
    return None


def is_true(obj: Object, kind: str) -> bool:
    found = find_condition(obj, kind)
    return found is not None and found.get("status") == "True"


def set_condition(obj: Object, new: Object) -> None:
    """Put a condition in, from now on if it says no other time; the time of its last transition changes only with its status."""
    new = {"lastTransitionTime": now_rfc3339(), **new}
    known = find_condition(obj, new["type"])
    if known is None:
        status = obj.setdefault("status", {})
        status["conditions"] = [*(status.get("conditions") or ()), new]
        return
    if known.get("status") == new["status"]:
        del new["lastTransitionTime"]
    known.update(new)
