"""What a pod takes of a quota: as it asks, and as its node says it has (upstream: component-helpers/resource/helpers.go, QuotaV1Pod)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from tetrapod.generic.quota.charge import Usage
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

Needs: TypeAlias = Callable[[Object, Object], Usage]
"""What a container needs, by itself and its status (empty where there is none)."""

_ENDED: Final = ("Succeeded", "Failed")
_OF_A_POD: Final = ("cpu", "memory")


def counts_as_pod(pod: Object) -> bool:
    """Pods that have ended, and those that should be gone by now, use nothing but an object."""
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return False
    meta = pod["metadata"]
    since, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    return since is None or grace is None or datetime.now(UTC) <= datetime.fromisoformat(since) + timedelta(seconds=grace)


def says_resources(pod: Object) -> bool:
    """The pod itself, not only its containers (upstream: IsPodLevelResourcesSet)."""
    resources = (pod.get("spec") or {}).get("resources") or {}
    return any(_of_a_pod(name) for kind in ("requests", "limits") for name in resources.get(kind) or ())


def pod_totals(pod: Object) -> tuple[Usage, Usage]:
    """Requests and limits of a whole pod: the most of what it asks for, what it was granted and what it has."""
    requests, limits = (_containers(pod, ways) for ways in (_requests(pod), _limits(pod)))
    spec = pod.get("spec") or {}
    overhead = {k: Quantity.of(v) for k, v in (spec.get("overhead") or {}).items()}
    for kind, total in (("requests", requests), ("limits", limits)):
        own = ((spec.get("resources") or {}).get(kind) or {}).items()
        total.update((name, Quantity.of(value)) for name, value in own if _of_a_pod(name))
        for name, quantity in overhead.items():
            if kind == "requests" or name in total:
                _add(total, {name: quantity})
    return requests, limits


def _of_a_pod(name: str) -> bool:
    return name in _OF_A_POD or name.startswith("hugepages-")


def _infeasible(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((c.get("reason") == "Infeasible" for c in conditions if c.get("type") == "PodResizePending"), False)


def _requests(pod: Object) -> list[Needs]:
    infeasible = _infeasible(pod)

    def asked(container: Object, _: Object) -> Usage:
        return _quantities((container.get("resources") or {}).get("requests"))

    def allocated(container: Object, status: Object) -> Usage:
        if status.get("allocatedResources"):
            return _quantities(status["allocatedResources"])
        return {} if infeasible else asked(container, status)

    def actual(container: Object, status: Object) -> Usage:
        if has := (status.get("resources") or {}).get("requests"):
            return _quantities(has)
        return allocated(container, status)

    return [actual, allocated] if infeasible else [asked, actual, allocated]


def _limits(pod: Object) -> list[Needs]:
    infeasible = _infeasible(pod)

    def asked(container: Object, _: Object) -> Usage:
        return _quantities((container.get("resources") or {}).get("limits"))

    def actual(container: Object, status: Object) -> Usage:
        if has := (status.get("resources") or {}).get("limits"):
            return _quantities(has)
        return {} if infeasible else asked(container, status)

    return [actual] if infeasible else [asked, actual]


def _containers(pod: Object, ways: list[Needs]) -> Usage:
    total: Usage = {}
    for way in ways:
        _raise(total, _together(pod, way))
    return total


def _together(pod: Object, needs_of: Needs) -> Usage:
    """The sum of what runs together, or the most that an init container needs while the sidecars before it run."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    listed = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    statuses = {one.get("name"): one for one in listed}
    total = _sum(needs_of(c, statuses.get(c.get("name")) or {}) for c in spec.get("containers") or ())
    sidecars: Usage = {}
    most: Usage = {}
    for container in spec.get("initContainers") or ():
        needs = needs_of(container, statuses.get(container.get("name")) or {})
        if container.get("restartPolicy") == "Always":
            _add(sidecars, needs)
            _add(total, needs)
            needs = sidecars
        else:
            needs = _sum((needs, sidecars))
        _raise(most, needs)
    _raise(total, most)
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
    for name, quantity in other.items():
        total[name] = max(total.get(name, quantity), quantity)
