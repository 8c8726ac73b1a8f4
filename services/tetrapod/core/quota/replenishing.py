"""Which changes of objects let a quota be counted anew (upstream: pkg/quota/v1/install/update_filter.go).

Admission charges what grows; what an object gives back without going away is told by its change.
"""

from __future__ import annotations

from typing import Any

from tetrapod.core.quota.pods import counts_as_pod
from tetrapod.core.quota.scopes import is_terminating
from tetrapod.machinery.gvk import GroupResource, Object


def gives_back(resource: GroupResource, old: Object, new: Object) -> bool:
    match resource:
        case ("", "pods"):
            moved = is_terminating(old) != is_terminating(new)
            return moved or _resources(old) != _resources(new) or (counts_as_pod(old) and not counts_as_pod(new))
        case ("", "services"):
            return _counted_type(old) != _counted_type(new)
        case ("", "persistentvolumeclaims"):
            return True  # upstream compares two pointers that are never the same
        case _:
            return False


def _resources(pod: Object) -> dict[str, Any]:
    """What a node says its containers have."""
    status = pod.get("status") or {}
    listed = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return {one["name"]: one.get("resources") for one in listed}


def _counted_type(service: Object) -> str:
    found = (service.get("spec") or {}).get("type") or ""
    return found if found in ("NodePort", "LoadBalancer") else ""
