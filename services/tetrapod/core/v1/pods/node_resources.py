"""The resources of nodes that a pod gets by its claims (status.nodeAllocatableResourceClaimStatuses).

Upstream: pkg/apis/core/validation/validation.go, validateNodeAllocatableResourceClaimStatus and
validatePodLevelResourcesCoverDRA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tetrapod.core.podspec.pod_resources import Amounts, add, aggregate, amounts
from tetrapod.core.validation.quantities import is_huge_page, is_node_allocatable, quantity
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated, same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

STATUSES: Final = "nodeAllocatableResourceClaimStatuses"
_OVERHEADS: Final = ("perPod", "perContainer")


def claim_statuses(status: Object, spec: Object) -> list[FieldError]:
    """Validate the amounts that claims give to a pod, by upstream's hand-written rules.

    Each claim is one of the pod, named in the spec or generated from a template. Each resource is cpu, memory or huge
    pages, and its amounts are not negative.

    Args:
        status: the status of the pod.
        spec: the spec of the pod.
    """
    listed = [*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ())]
    claims = {claim.get("resourceClaimName") for claim in listed}
    errors: list[FieldError] = []
    for i, allocated in enumerate(status.get(STATUSES) or ()):
        path, name = f"status.{STATUSES}[{i}]", allocated.get("resourceClaimName") or ""
        if not name:
            continue
        if name not in claims:
            errors.append(field.invalid(f"{path}.resourceClaimName", name, "no mapping found in pod reference"))
        for j, mapped in enumerate(allocated.get("mapping") or ()):
            errors += _resource(mapped, ("quantity",), f"{path}.mapping[{j}]")
        for j, overhead in enumerate(allocated.get("overhead") or ()):
            errors += _resource(overhead, _OVERHEADS, f"{path}.overhead[{j}]")
    return errors


def _resource(given: Object, fields: Iterable[str], path: str) -> list[FieldError]:
    name, errors = given.get("name") or "", []
    if not is_node_allocatable(name):
        errors.append(field.invalid(f"{path}.name", name, "must be a node allocatable resource name"))
    if fields == _OVERHEADS and all(given.get(key) is None for key in fields):
        errors.append(field.invalid(path, "", "at least one of perPod or perContainer must be set"))
    errors += [
        field.invalid(f"{path}.{key}", str(amount), "must be non-negative")
        for key in fields
        if (amount := quantity(given.get(key))).sign < 0
    ]
    return errors


def declared_claim_statuses(listed: list[Object], stored: list[Object]) -> list[FieldError]:
    """Validate the amounts that claims give to a pod, by the rules that upstream declares beside the fields.

    Claims are named and unique, and so are the containers and the resources of each. Unchanged values are not
    validated again.

    Args:
        listed: the field of the new status.
        stored: that of the stored status.
    """
    if same(listed, stored):
        return []
    path, by_name = f"status.{STATUSES}", {one.get("resourceClaimName") or "": one for one in stored}
    names = [one.get("resourceClaimName") or "" for one in listed]
    errors = [field.duplicate(f"{path}[{i}]", _shown(listed[i])) for i in sorted(repeated(names))]
    for i, (name, allocated) in enumerate(zip(names, listed, strict=True)):
        at, old = f"{path}[{i}]", by_name.get(name)
        if not name and old is None:
            errors.append(field.required(f"{at}.resourceClaimName"))
        containers = allocated.get("containers") or []
        if not same(containers, (old or {}).get("containers")):
            errors += [field.duplicate(f"{at}.containers[{j}]", containers[j]) for j in sorted(repeated(containers))]
        for key, shown in (("mapping", _shown_mapped), ("overhead", _shown_overhead)):
            errors += _declared_resources(allocated.get(key) or [], (old or {}).get(key) or [], f"{at}.{key}", shown)
    return errors


def _declared_resources(listed: list[Object], stored: list[Object], path: str, shown: Any) -> list[FieldError]:
    """Validate the resources of one claim: they are named and unique, and a mapped one has a quantity.

    Args:
        listed: the resources.
        stored: the stored ones.
        path: the field path of the list, for the errors.
        shown: returns a resource as the errors show it.
    """
    if same(listed, stored):
        return []
    old_names, names = ([one.get("name") or "" for one in each] for each in (stored, listed))
    without_quantity = {one.get("name") or "" for one in stored if one.get("quantity") is None}
    errors = [field.duplicate(f"{path}[{i}]", shown(listed[i])) for i in sorted(repeated(names))]
    for i, (name, resource) in enumerate(zip(names, listed, strict=True)):
        if not name and "" not in old_names:
            errors.append(field.required(f"{path}[{i}].name"))
        if shown is _shown_mapped and resource.get("quantity") is None and name not in without_quantity:
            errors.append(field.required(f"{path}[{i}].quantity"))
    return errors


def _shown(allocated: Object) -> Object:
    shown: Object = {"resourceClaimName": allocated.get("resourceClaimName") or ""}
    if allocated.get("containers"):
        shown["containers"] = allocated["containers"]
    for key, element in (("mapping", _shown_mapped), ("overhead", _shown_overhead)):
        if allocated.get(key):
            shown[key] = [element(one) for one in allocated[key]]
    return shown


def _shown_mapped(mapped: Object) -> Object:
    return {"name": mapped.get("name") or "", "quantity": mapped.get("quantity")}


def _shown_overhead(overhead: Object) -> Object:
    given = {key: overhead[key] for key in _OVERHEADS if overhead.get(key) is not None}
    return {"name": overhead.get("name") or "", **given}


def uncovered(pod: Object) -> str:
    """Return why the pod-level resources are too low for the containers and for what claims give to the pod.

    The requests cover the sum of both. The limits of huge pages do so too, and other limits cover each container with
    its claims. The result is "" if they do.

    Args:
        pod: a pod with pod-level resources.
    """
    spec, allocated = pod.get("spec") or {}, (pod.get("status") or {}).get(STATUSES) or []
    requests, limits = (amounts((spec.get("resources") or {}).get(kind)) for kind in ("requests", "limits"))
    claimed: Amounts = {}
    for one in allocated:
        add(claimed, _amounts(one, len(one.get("containers") or ())))
    total = aggregate(spec, "requests")
    add(total, claimed)
    for name, request in requests.items():
        if is_node_allocatable(name) and name in total and total[name] > request:
            needs = "the aggregated container and node-allocatable DRA requests"
            return f"pod level request for {name} is insufficient to cover {needs}"
    total = aggregate(spec, "limits")
    add(total, {name: value for name, value in claimed.items() if name in total or is_huge_page(name)})
    for name, needed in total.items():
        if is_huge_page(name) and name in limits and needed > limits[name]:
            needs = "the aggregated container and node-allocatable DRA limits"
            return f"pod level limit for {name} is insufficient to cover {needs}"
    return _uncovered_container(spec.get("containers") or [], limits, allocated)


def _uncovered_container(containers: list[Object], limits: Mapping[str, Quantity], allocated: list[Object]) -> str:
    """Return why the limits of a pod are too low for a container with its claims; "" if they are not.

    Args:
        containers: the containers of the pod.
        limits: the limits of the pod.
        allocated: the amounts that claims give to the pod.
    """
    for container in containers:
        name = container.get("name") or ""
        needed = amounts((container.get("resources") or {}).get("limits"))
        extra: Amounts = {}
        for one in allocated:
            if name in (one.get("containers") or ()):
                add(extra, _amounts(one, 1))
        for resource, limit in needed.items():
            if is_huge_page(resource) or resource not in limits:
                continue
            if limit + extra.get(resource, quantity(None)) > limits[resource]:
                needs = f"the limit and DRA overhead for container {name}"
                return f"pod level limit for {resource} is insufficient to cover {needs}"
    return ""


def _amounts(allocated: Object, containers: int) -> Amounts:
    """Return the sums of the resources that one claim gives to some containers of a pod.

    Args:
        allocated: the entry of the claim in the pod's status.
        containers: the number of the containers.
    """
    total: Amounts = {}
    for mapped in allocated.get("mapping") or ():
        add(total, {mapped.get("name") or "": quantity(mapped.get("quantity"))})
    for overhead in allocated.get("overhead") or ():
        each = quantity(overhead.get("perContainer")) * containers
        add(total, {overhead.get("name") or "": quantity(overhead.get("perPod")) + each})
    return total
