"""Detection of updates that can decrease the usage of quotas, so that the quotas must be recalculated.

Admission charges increases. Upstream: pkg/quota/v1/install/update_filter.go.
"""

from __future__ import annotations

from typing import Any

from tetrapod.core.quota.pods import counts_as_pod
from tetrapod.core.quota.scopes import is_terminating
from tetrapod.machinery.equality import same
from tetrapod.machinery.gvk import GroupResource, Object


def may_decrease_usage(resource: GroupResource, old: Object, new: Object) -> bool:
    """Return whether an update of an object may decrease its usage, so that quotas must be recalculated.

    That is so for a pod whose scope or actual resources change or that is no longer counted, for a Service whose
    counted type changes, and for every update of a PersistentVolumeClaim. Other resources give False.
    """
    match resource:
        case ("", "pods"):
            scope_changed = is_terminating(old) != is_terminating(new)
            return scope_changed or _resources_changed(old, new) or (counts_as_pod(old) and not counts_as_pod(new))
        case ("", "services"):
            return _counted_type(old) != _counted_type(new)
        case ("", "persistentvolumeclaims"):
            return True  # upstream compares two pointers that are never equal
        case _:
            return False


def _resources_changed(old: Object, new: Object) -> bool:
    """Return whether the actual resources of a container differ that had a status before and still has one."""
    former, current = _resources(old), _resources(new)
    return any(name in current and not same(current[name], resources) for name, resources in former.items())


def _resources(pod: Object) -> dict[str, Any]:
    """Return the actual resources of each container by name, as the pod's status reports them."""
    status = pod.get("status") or {}
    container_statuses = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return {container_status["name"]: container_status.get("resources") for container_status in container_statuses}


def _counted_type(service: Object) -> str:
    """Return the type of a Service if quotas count it (NodePort or LoadBalancer), else ""."""
    service_type = (service.get("spec") or {}).get("type") or ""
    return service_type if service_type in ("NodePort", "LoadBalancer") else ""
