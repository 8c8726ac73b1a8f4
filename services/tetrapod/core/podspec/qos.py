"""The quality of service class of a pod: Guaranteed, Burstable or BestEffort. Upstream: pkg/apis/core/helper/qos."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from tetrapod.core.podspec.pod_resources import POD_LEVEL_GATE, has_pod_level_resources
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_RESOURCES: Final = ("cpu", "memory")
_ZERO: Final = Quantity.of("0")


def qos_class(spec: Object) -> str:
    """Return the QoS class of a pod spec: "Guaranteed", "Burstable" or "BestEffort".

    Pod-level resources, if there are any, decide instead of those of the containers. Without the gate
    PodLevelResourcesFixKubeletQOSClass, an empty field decides too.
    """
    resources = spec.get("resources")
    if (
        resources is not None
        and feature_gates.enabled(POD_LEVEL_GATE)
        and (has_pod_level_resources(spec) or not feature_gates.enabled("PodLevelResourcesFixKubeletQOSClass"))
    ):
        return _of(resources)
    containers = chain(spec.get("initContainers") or (), spec.get("containers") or ())
    return _common(_of(container.get("resources") or {}) for container in containers)


def _of(resources: Object) -> str:
    """Return the QoS class of one ResourceRequirements: that of cpu and memory if they agree, else "Burstable"."""
    requests, limits = (resources.get(kind) or {} for kind in ("requests", "limits"))
    if not requests and not limits:
        return "BestEffort"
    return _common(
        _resource(
            *(Quantity.of(quantities[name]) if name in quantities else _ZERO for quantities in (requests, limits))
        )
        for name in _RESOURCES
    )


def _resource(request: Quantity, limit: Quantity) -> str:
    if request == _ZERO and limit == _ZERO:
        return "BestEffort"
    return "Guaranteed" if request == limit else "Burstable"


def _common(classes: Iterator[str]) -> str:
    """Return the class that all elements have, "Burstable" if they differ, or "BestEffort" for no elements."""
    first = next(classes, "BestEffort")
    return first if all(other == first for other in classes) else "Burstable"
