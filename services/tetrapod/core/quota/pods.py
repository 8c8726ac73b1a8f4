"""The requests and limits that a quota charges for a pod.

A container is charged for the maximum of its spec's, the allocated and the actual resources, which differ during a
resize.

Upstream: k8s.io/component-helpers/resource/helpers.go, pkg/quota/v1/evaluator/core/pods.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from tetrapod.core.podspec.pod_resources import POD_LEVEL_GATE, at_pod_level, has_pod_level_resources
from tetrapod.generic.admission.quota import Usage
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

Needs: TypeAlias = Callable[[Object, Object], Usage]
"""Returns the resources of a container for its spec and its status ({} if it has none)."""

_ENDED: Final = ("Succeeded", "Failed")


_MUST_SPECIFY: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})


def counts_as_pod(pod: Object) -> bool:
    """Return whether a quota charges the pod for `pods`, requests and limits.

    Pods that have ended or exceeded their deletion grace period are charged only for `count/pods`.
    """
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return False
    meta = pod["metadata"]
    since, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    return (
        since is None or grace is None or datetime.now(UTC) <= datetime.fromisoformat(since) + timedelta(seconds=grace)
    )


def pod_totals(pod: Object) -> tuple[Usage, Usage]:
    """Return the requests and the limits that quotas charge for the pod, overhead included, by resource name.

    Resources at pod level replace the totals of the containers.
    """
    requests, limits = (_containers(pod, ways) for ways in (_requests(pod), _limits(pod)))
    spec = pod.get("spec") or {}
    overhead = {k: Quantity.of(v) for k, v in (spec.get("overhead") or {}).items()}
    for kind, total in (("requests", requests), ("limits", limits)):
        if feature_gates.enabled(POD_LEVEL_GATE):
            pod_level = ((spec.get("resources") or {}).get(kind) or {}).items()
            total.update((name, Quantity.of(value)) for name, value in pod_level if at_pod_level(name))
        for name, quantity in overhead.items():
            if kind == "requests" or name in total:
                _add(total, {name: quantity})
    return requests, limits


def _infeasible(pod: Object) -> bool:
    """Return whether the pod's condition PodResizePending says that the requested resize is infeasible."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((c.get("reason") == "Infeasible" for c in conditions if c.get("type") == "PodResizePending"), False)


def _requests(pod: Object) -> list[Needs]:
    """Return functions that compute the requests of one container: from the spec, as allocated, and as applied.

    A quota charges the largest result. While a resize is infeasible, the spec is not used.
    """
    infeasible = _infeasible(pod)

    def requested(container: Object, _: Object) -> Usage:
        return _quantities((container.get("resources") or {}).get("requests"))

    def allocated(container: Object, status: Object) -> Usage:
        if status.get("allocatedResources"):
            return _quantities(status["allocatedResources"])
        return {} if infeasible else requested(container, status)

    def actual(container: Object, status: Object) -> Usage:
        if actual_requests := (status.get("resources") or {}).get("requests"):
            return _quantities(actual_requests)
        return allocated(container, status)

    return [actual, allocated] if infeasible else [requested, actual, allocated]


def _limits(pod: Object) -> list[Needs]:
    """Return functions that compute the limits of one container: from the spec, and as applied.

    A quota charges the largest result. While a resize is infeasible, the spec is not used.
    """
    infeasible = _infeasible(pod)

    def requested(container: Object, _: Object) -> Usage:
        return _quantities((container.get("resources") or {}).get("limits"))

    def actual(container: Object, status: Object) -> Usage:
        if actual_limits := (status.get("resources") or {}).get("limits"):
            return _quantities(actual_limits)
        return {} if infeasible else requested(container, status)

    return [actual] if infeasible else [requested, actual]


def _containers(pod: Object, ways: list[Needs]) -> Usage:
    """Return the total resources of the pod's containers; if several functions compute them, the largest total.

    The largest total is chosen separately for each resource name.

    Args:
        pod: the pod.
        ways: functions that compute the resources of one container (see `_requests`).
    """
    total: Usage = {}
    for way in ways:
        _raise(total, _together(pod, way))
    return total


def _together(pod: Object, needs_of: Needs) -> Usage:
    """Return the resources that the pod's containers need at the same time.

    This is the sum over containers and sidecars. If an init container and the sidecars started before it need more than
    that sum, their need is returned instead.

    Args:
        pod: the pod.
        needs_of: computes the resources of one container.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    container_statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    statuses = {container_status.get("name"): container_status for container_status in container_statuses}
    total = _sum(needs_of(c, statuses.get(c.get("name")) or {}) for c in spec.get("containers") or ())
    sidecars: Usage = {}
    peak: Usage = {}
    for container in spec.get("initContainers") or ():
        needs = needs_of(container, statuses.get(container.get("name")) or {})
        if container.get("restartPolicy") == "Always":
            _add(sidecars, needs)
            _add(total, needs)
            needs = sidecars
        else:
            needs = _sum((needs, sidecars))
        _raise(peak, needs)
    _raise(total, peak)
    return total


def _quantities(listed: Object | None) -> Usage:
    return {name: Quantity.of(value) for name, value in (listed or {}).items()}


def _sum(parts: Iterable[Usage]) -> Usage:
    total: Usage = {}
    for part in parts:
        _add(total, part)
    return total


def _add(total: Usage, part: Usage) -> None:
    for name, quantity in part.items():
        total[name] = total[name] + quantity if name in total else quantity


def _raise(total: Usage, other: Usage) -> None:
    """Raise each quantity in `total` to at least that in `other`, in place."""
    for name, quantity in other.items():
        total[name] = max(total.get(name, quantity), quantity)


def unspecified_resources(pod: Object, hard: Iterable[str]) -> str:
    """Return the limited resources that containers do not specify, as in `cpu for: a,b; limits.memory for: a`.

    Args:
        pod: the pod.
        hard: the quota's resource names.

    Returns:
        "" if all are specified, or if the pod has resources at pod level.

    Upstream: pkg/quota/v1/evaluator/core/pods.go, Constraints.
    """
    required = sorted(_MUST_SPECIFY & set(hard))
    pod_level = feature_gates.enabled(POD_LEVEL_GATE) and has_pod_level_resources(pod.get("spec") or {})
    if not required or pod_level:
        return ""
    spec = pod.get("spec") or {}
    missing: dict[str, list[str]] = {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        for name in required:
            if not _specifies(container.get("resources") or {}, name):
                missing.setdefault(name, []).append(container.get("name", ""))
    return "; ".join(
        f"{name} for: {','.join(sorted(set(container_names)))}" for name, container_names in sorted(missing.items())
    )


def _specifies(resources: Object, name: str) -> bool:
    """Return whether the container has the request or limit that the quota name counts; `cpu` means `requests.cpu`."""
    kind, _, bare = name.rpartition(".")
    return bare in (resources.get(kind or "requests") or {})
