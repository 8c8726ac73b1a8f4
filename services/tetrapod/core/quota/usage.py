"""The usage of one object, by quota resource name. Upstream: pkg/quota/v1/evaluator/core and generic object counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from tetrapod.core.quota.devices import (
    ALONE,
    CLAIMS,
    CLASS_SUFFIX,
    IMPLICIT,
    NO_NAMES,
    REQUESTS,
    ClaimContext,
    Extended,
    device_usage,
)
from tetrapod.core.quota.pods import counts_as_pod, pod_totals
from tetrapod.core.validation.quantities import is_native
from tetrapod.generic.admission.quota import ONE, UNCOUNTED, Usage, count_name
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.quantity import Quantity

_LEGACY_COUNTS: Final = frozenset(
    {"configmaps", "secrets", "services", "replicationcontrollers", "resourcequotas", "persistentvolumeclaims"}
)
_STANDARD: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"
_OF_PODS: Final = frozenset({"pods"} | {f"{kind}{name}" for kind in ("", "requests.", "limits.") for name in _STANDARD})
_OF_SERVICES: Final = frozenset({"services", "services.nodeports", "services.loadbalancers"})
_OF_CLAIMS: Final = frozenset({"persistentvolumeclaims", "requests.storage"})
_HUGE_PAGES: Final = ("hugepages-", "requests.hugepages-")


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str
    namespace: str | msgspec.UnsetType = msgspec.UNSET


class _Named(msgspec.Struct):
    metadata: _Metadata


_LOOKED_INTO: Final = frozenset({("", "pods"), ("", "services"), ("", "persistentvolumeclaims"), CLAIMS})


def counted_fields(resource: GroupResource) -> type[msgspec.Struct] | None:
    """Return the struct type to decode objects into when they are counted.

    Returns:
        A type with only the metadata, or None if usage depends on the whole object (pods, services and claims).
    """
    return None if resource in _LOOKED_INTO else _Named


def usage_of(resource: GroupResource, obj: Object, context: ClaimContext = ALONE) -> Usage:
    """Return what the object uses, by quota resource name: `pods`, `requests.cpu`, `count/secrets` and others.

    Args:
        context: the other objects that determine the usage of a ResourceClaim; not used for other kinds.
    """
    used: Usage = {count_name(resource): ONE}
    if resource == CLAIMS:
        used.update(device_usage(obj, context))
    if resource.group:
        return used
    if resource.resource in _LEGACY_COUNTS:
        used[resource.resource] = ONE
    if resource.resource == "pods":
        _pod(obj, used)
    elif resource.resource == "services":
        _service(obj.get("spec") or {}, used)
    elif resource.resource == "persistentvolumeclaims":
        _claim(obj, used)
    return used


def _pod(pod: Object, used: Usage) -> None:
    if not counts_as_pod(pod):
        return
    used["pods"] = ONE
    requests, limits = pod_totals(pod)
    for name, quantity in requests.items():
        used[f"requests.{name}"] = quantity
        if name in _STANDARD or name.startswith("hugepages-"):
            used[name] = quantity
    for name, quantity in limits.items():
        if name in _STANDARD:
            used[f"limits.{name}"] = quantity


def _service(spec: Object, used: Usage) -> None:
    ports = len(spec.get("ports") or ())
    if spec.get("type") == "LoadBalancer":
        used["services.loadbalancers"] = ONE
        allocates = spec.get("allocateLoadBalancerNodePorts") is not False
        port_count = ports if allocates else sum(bool(p.get("nodePort")) for p in spec.get("ports") or ())
        used["services.nodeports"] = Quantity.from_int(port_count)
    elif spec.get("type") == "NodePort":
        used["services.nodeports"] = Quantity.from_int(ports)


def _claim(claim: Object, used: Usage) -> None:
    spec = claim.get("spec") or {}
    name = (claim["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class") or spec.get(
        "storageClassName"
    )
    prefix = f"{name}{_CLASS_SUFFIX}" if name else ""
    if prefix:
        used[f"{prefix}persistentvolumeclaims"] = ONE
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is not None:
        allocated = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
        quantity = max(Quantity.of(q).round_up(0) for q in (storage, allocated) if q is not None)  # whole bytes
        used["requests.storage"] = quantity
        if prefix:
            used[f"{prefix}requests.storage"] = quantity


def counted_names(resource: GroupResource, hard: Iterable[str], context: ClaimContext = ALONE) -> list[str]:
    """Return those of the quota's resource names that can count objects of this resource, sorted.

    Args:
        hard: the quota's resource names.
        context: knows the extended resource names of DeviceClasses; needed for ResourceClaims.

    Upstream: MatchingResources.
    """
    return sorted(name for name in hard if name == count_name(resource) or _counts_name(resource, name, context))


def _counts_name(resource: GroupResource, name: str, context: ClaimContext) -> bool:
    if resource == CLAIMS:
        return name.endswith(CLASS_SUFFIX) or context.names.counts_claims(name)
    if resource.group:
        return False
    match resource.resource:
        case "pods":
            return name in _OF_PODS or name.startswith(_HUGE_PAGES) or _is_extended(name)
        case "services":
            return name in _OF_SERVICES
        case "persistentvolumeclaims":
            return name in _OF_CLAIMS or name.endswith(tuple(f"{_CLASS_SUFFIX}{one}" for one in _OF_CLAIMS))
    return name in _LEGACY_COUNTS and name == resource.resource


def _is_extended(name: str) -> bool:
    return name.startswith(REQUESTS) and (not is_native(name) or name.startswith(f"{REQUESTS}{IMPLICIT}"))


def tracked(hard: Iterable[str], names: Extended = NO_NAMES) -> set[GroupResource]:
    """Return the API resources, such as `pods`, whose objects count towards a quota. Those never counted are left out.

    Args:
        hard: the resource names that the quota limits, such as `requests.cpu`.
        names: the extended resource names of DeviceClasses.
    """
    resources: set[GroupResource] = set()
    for name in hard:
        if name.startswith("count/"):
            resource, _, group = name.removeprefix("count/").partition(".")
            resources.add(GroupResource(group, resource))
        elif name in _LEGACY_COUNTS:
            resources.add(GroupResource("", name))
        elif name.endswith(CLASS_SUFFIX):
            resources.add(CLAIMS)
        elif name.startswith("services."):
            resources.add(GroupResource("", "services"))
        elif _CLASS_SUFFIX in name or name == "requests.storage":
            resources.add(GroupResource("", "persistentvolumeclaims"))
        else:
            resources.add(GroupResource("", "pods"))
            if names.counts_claims(name):
                resources.add(CLAIMS)
    return resources - UNCOUNTED
