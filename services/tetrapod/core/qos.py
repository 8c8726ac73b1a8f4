"""Quality of service of a pod: Guaranteed, Burstable or BestEffort (upstream: pkg/apis/core/helper/qos)."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_RESOURCES: Final = ("cpu", "memory")
_ZERO: Final = Quantity.of("0")


def qos_class(spec: Object) -> str:
    resources = spec.get("resources") or {}
    if any(_counts(name) for kind in ("requests", "limits") for name in resources.get(kind) or ()):
        return _of(resources)
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return _common([_of(container.get("resources") or {}) for container in containers])


def _counts(name: str) -> bool:
    """Of what a pod asks for as a whole."""
    return name in _RESOURCES or name.startswith("hugepages-")


def _of(resources: Object) -> str:
    requests, limits = (resources.get(kind) or {} for kind in ("requests", "limits"))
    return _common(
        [_resource(*(Quantity.of(listed[name]) if name in listed else _ZERO for listed in (requests, limits))) for name in _RESOURCES]
    )


def _resource(request: Quantity, limit: Quantity) -> str:
    if request == _ZERO and limit == _ZERO:
        return "BestEffort"
    return "Guaranteed" if request == limit else "Burstable"


def _common(classes: list[str]) -> str:
    """That of all, where they have one."""
    found = set(classes)
    return classes[0] if len(found) == 1 else "Burstable" if found else "BestEffort"
