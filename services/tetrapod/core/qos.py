"""Quality of service of a pod: Guaranteed, Burstable or BestEffort (upstream: pkg/apis/core/v1/helper/qos)."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_RESOURCES: Final = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    if resources := spec.get("resources"):
        return _qos([resources])
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return _qos([c.get("resources") or {} for c in containers])


def _qos(all_resources: list[Object]) -> str:
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for resources in all_resources:
        _sum(requests, resources.get("requests"))
        named = _sum(limits, resources.get("limits"))
        if len(named) < len(_RESOURCES):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and all(limits.get(name) == amount for name, amount in requests.items()) and len(requests) == len(limits):
        return "Guaranteed"
    return "Burstable"


def _sum(into: dict[str, int], listed: Object | None) -> set[str]:
    """Add up what is asked for of cpu and memory; zeroes do not count. Returns what was named."""
    named = set()
    for name in _RESOURCES:
        value = (listed or {}).get(name)
        if value is None:
            continue
        amount = Quantity.of(value).nano
        if amount > 0:
            named.add(name)
            into[name] = into.get(name, 0) + amount
    return named
