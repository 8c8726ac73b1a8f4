"""Resource lists: their parsed and rounded quantities, and the total requests and limits of a pod.

Used by validation, LimitRanger, quota and defaulting.
Upstream: k8s.io/component-helpers/resource/helpers.go; pkg/apis/core/v1/defaults.go, SetDefaults_ResourceList.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

Amounts = dict[str, Quantity]
POD_LEVEL_GATE: Final = "PodLevelResources"
"""The gate with which a pod has requests and limits besides those of its containers."""


def amounts(listed: Mapping[str, Any] | None) -> Amounts:
    """Return the quantities of a ResourceList, parsed; {} for None."""
    return {name: Quantity.of(value) for name, value in (listed or {}).items()}


def add(into: Amounts, more: Amounts) -> None:
    """Add the quantities of `more` to `into`, in place; missing ones count as zero."""
    for name, value in more.items():
        into[name] = into[name] + value if name in into else value


def maximum(into: Amounts, other: Amounts) -> None:
    """Raise each quantity of `into` to that of `other` if that is larger or `into` has none, in place."""
    for name, value in other.items():
        if name not in into or value > into[name]:
            into[name] = value


def _of(container: Object, kind: str) -> Amounts:
    return amounts((container.get("resources") or {}).get(kind))


def aggregate(spec: Object, kind: str) -> Amounts:
    """Return the total requests or limits of the containers of a pod spec, without ephemeral containers and overhead.

    Containers and sidecars run together, so they are added up. Other init containers run one at a time before them,
    together with the sidecars that were started earlier. If one of them needs more than that sum, its need is the
    total.

    Args:
        spec: the pod spec.
        kind: "requests" or "limits".
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, _of(container, kind))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        needs = _of(container, kind)
        if container.get("restartPolicy") == "Always":
            add(total, needs)
            add(sidecars, needs)
            maximum(peak, sidecars)
        else:
            add(needs, sidecars)
            maximum(peak, needs)
    maximum(total, peak)
    return total


def at_pod_level(name: str) -> bool:
    """Return whether a pod can have the resource at pod level: cpu, memory or huge pages."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def has_pod_level_resources(spec: Object) -> bool:
    """Return whether a pod spec has requests or limits at pod level. Upstream: IsPodLevelResourcesSet."""
    resources = spec.get("resources") or {}
    return any(at_pod_level(name) for kind in ("requests", "limits") for name in resources.get(kind) or ())


def pod_amounts(spec: Object, kind: str) -> Amounts:
    """Return the total requests or limits of a pod.

    Pod-level resources take precedence over the total of the containers. Overhead is added to each request, and to each
    limit that is set and not zero.

    Args:
        kind: "requests" or "limits".
    """
    total = aggregate(spec, kind)
    total.update(amounts((spec.get("resources") or {}).get(kind)))
    for name, value in amounts(spec.get("overhead")).items():
        if kind == "requests":
            total[name] = total[name] + value if name in total else value
        elif name in total and not total[name].is_zero:
            total[name] = total[name] + value
    return total


def round_up(resources: dict[str, Any]) -> None:
    """Round each quantity up to a thousandth, in place. Only values with the suffix n or u can be finer."""
    for name, value in resources.items():
        if isinstance(value, str) and value and value[-1] in "nu":
            resources[name] = str(Quantity.parse(value).round_up(-3))


def round_requirements(resources: Object) -> None:
    """Round the limits and requests of ResourceRequirements up to a thousandth, in place."""
    for name in ("limits", "requests"):
        if quantities := resources.get(name):
            round_up(quantities)
