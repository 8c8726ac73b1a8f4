"""Checks of pods and PersistentVolumeClaims against LimitRanges, with upstream's error texts.

Upstream: plugin/pkg/admission/limitranger/admission.go, minConstraint, maxConstraint and others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tetrapod.core.podspec.pod_resources import POD_LEVEL_GATE, Amounts, aggregate, amounts, at_pod_level
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import ZERO, Quantity

_MAX_MILLI: Final = (1 << 63) // 1000


def pod_violations(limits: list[Object], spec: Object) -> Iterator[str]:
    """Yield an error text for each bound of type Container or Pod that the pod spec violates.

    Args:
        limits: spec.limits of a LimitRange.
        spec: the spec of a pod.
    """
    for item in limits:
        kind = item.get("type") or ""
        if kind == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                yield from _violations(item, kind, amounts(resources.get("requests")), amounts(resources.get("limits")))
        elif kind == "Pod":
            yield from _violations(item, kind, _total(spec, "requests"), _total(spec, "limits"))


def _total(spec: Object, part: str) -> Amounts:
    """Return the total requests or limits of a pod; those at pod level replace the sum over its containers.

    Args:
        part: "requests" or "limits".
    """
    total = aggregate(spec, part)
    if feature_gates.enabled(POD_LEVEL_GATE):
        pod_level = amounts((spec.get("resources") or {}).get(part))
        total.update((name, amount) for name, amount in pod_level.items() if at_pod_level(name))
    return total


def claim_violations(limits: list[Object], spec: Object) -> Iterator[str]:
    """Yield an error text for each bound of type PersistentVolumeClaim that the claim's requests violate.

    Args:
        limits: spec.limits of a LimitRange.
        spec: the spec of a claim.
    """
    requests = amounts((spec.get("resources") or {}).get("requests"))
    for item in limits:
        if item.get("type") != "PersistentVolumeClaim":
            continue
        for name, bound in amounts(item.get("min")).items():
            yield from _at_least(name, "PersistentVolumeClaim", bound, requests.get(name), None)
        for name, bound in amounts(item.get("max")).items():
            text, request = f"maximum {name} usage per PersistentVolumeClaim is {bound}", requests.get(name)
            if request is None:
                yield f"{text}.  No request is specified"
            elif (compared := _compared(request, None, bound)).request > compared.bound:
                yield f"{text}, but request is {request}"


def _violations(item: Object, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in amounts(item.get("min")).items():
        yield from _at_least(name, kind, bound, requests.get(name), limits.get(name))
    for name, bound in amounts(item.get("max")).items():
        yield from _at_most(name, kind, bound, requests.get(name), limits.get(name))
    for name, bound in amounts(item.get("maxLimitRequestRatio")).items():
        yield from _ratio(name, kind, bound, requests.get(name), limits.get(name))


class _Compared(NamedTuple):
    """A request, a limit and a bound as the numbers that upstream compares."""

    request: int
    limit: int
    bound: int


def _compared(request: Quantity | None, limit: Quantity | None, bound: Quantity) -> _Compared:
    """Return thousandths, rounded up, if each amount is small enough, else whole units. Unset quantities are 0.

    Upstream: plugin/pkg/admission/limitranger/admission.go, requestLimitEnforcedValues.
    """
    quantities = (request or ZERO, limit or ZERO, bound)
    if all(quantity.value <= _MAX_MILLI for quantity in quantities):
        return _Compared(*(quantity.milli_value for quantity in quantities))
    return _Compared(*(quantity.value for quantity in quantities))


def _at_least(name: str, kind: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    text = f"minimum {name} usage per {kind} is {bound}"
    compared = _compared(request, limit, bound)
    if request is None:
        yield f"{text}.  No request is specified"
    elif compared.request < compared.bound:
        yield f"{text}, but request is {request}"
    elif limit is not None and compared.limit < compared.bound:
        yield f"{text}, but limit is {limit}"


def _at_most(name: str, kind: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    text = f"maximum {name} usage per {kind} is {bound}"
    compared = _compared(request, limit, bound)
    if limit is None:
        yield f"{text}.  No limit is specified"
    elif compared.limit > compared.bound:
        yield f"{text}, but limit is {limit}"
    elif request is not None and compared.request > compared.bound:
        yield f"{text}, but request is {request}"


def _ratio(name: str, kind: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {kind} is {bound}, but"
    compared = _compared(request, limit, bound)
    if not compared.request:
        yield f"{text} no request is specified or request is 0"
    elif not compared.limit:
        yield f"{text} no limit is specified or limit is 0"
    else:
        ratio = compared.limit / compared.request
        if (bound.value <= _MAX_MILLI and ratio * 1000 > bound.milli_value) or ratio > bound.value:
            yield f"{text} provided ratio is {ratio:f}"
