"""Validation of CSIDriver, CSINode and CSIStorageCapacity.

Upstream: pkg/apis/storage/validation/validation.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.validation import quantities, shown
from tetrapod.core.validation.names import csi_driver_name, dns_subdomain, immutable, known, not_negative, qualified_name
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated, same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector

_GROUP_POLICIES: Final = frozenset({"ReadWriteOnceWithFSType", "File", "None"})
_LIFECYCLE: Final = ["Persistent", "Ephemeral"]
_LEAST_EXPIRATION: Final = 600
_LONGEST_EXPIRATION: Final = 1 << 32
_SHORTEST_PERIOD: Final = 10
_NODE_ID: Final = 256
_FLAGS: Final = ("attachRequired", "podInfoOnMount", "storageCapacity")
_UNSET: Final = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"


def validate_driver(obj: Object) -> list[FieldError]:
    """Validate a CSIDriver."""
    spec = obj.get("spec") or {}
    errors = [field.required(f"spec.{name}") for name in _FLAGS if spec.get(name) is None]
    if (policy := spec.get("fsGroupPolicy")) is None:
        errors.append(field.required("spec.fsGroupPolicy"))
    else:
        errors += known(policy, _GROUP_POLICIES, "spec.fsGroupPolicy")
    errors += _token_requests(spec.get("tokenRequests") or [])
    for mode in spec.get("volumeLifecycleModes") or ():
        errors += known(mode, _LIFECYCLE, "spec.volumeLifecycleModes")
    return errors + _driver_rest(spec)


def _driver_rest(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    period, secrets = spec.get("nodeAllocatableUpdatePeriodSeconds"), spec.get("serviceAccountTokenInSecrets")
    if period is not None and period < _SHORTEST_PERIOD:
        text = f"must be greater than or equal to {_SHORTEST_PERIOD} seconds"
        errors.append(field.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    if secrets is not None and not spec.get("tokenRequests"):
        errors.append(field.invalid("spec.serviceAccountTokenInSecrets", secrets, _UNSET))
    return errors


def _token_requests(requests: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, request in enumerate(requests):
        audience, seconds, path = request.get("audience") or "", request.get("expirationSeconds"), f"spec.tokenRequests[{i}]"
        if audience in seen:
            errors.append(field.duplicate(f"{path}.audience", audience))
            continue
        seen.add(audience)
        if seconds is None:
            continue
        if seconds < _LEAST_EXPIRATION:
            text = "may not specify a duration less than 10 minutes"
            errors.append(field.invalid(f"{path}.expirationSeconds", seconds, text))
        if seconds > _LONGEST_EXPIRATION:
            text = "may not specify a duration larger than 2^32 seconds"
            errors.append(field.invalid(f"{path}.expirationSeconds", seconds, text))
    return errors


def validate_driver_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated CSIDriver; attachRequired and volumeLifecycleModes are immutable."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = validate_driver(new)
    errors += immutable(spec.get("attachRequired"), old_spec.get("attachRequired"), "spec.attachedRequired")
    return errors + immutable(spec.get("volumeLifecycleModes"), old_spec.get("volumeLifecycleModes"), "spec.volumeLifecycleModes")


def driver_warnings(new: Object, old: Object | None) -> list[str]:
    """Return a warning if tokenRequests is set (or changed) and serviceAccountTokenInSecrets is unset."""
    spec = new.get("spec") or {}
    if not spec.get("tokenRequests") or spec.get("serviceAccountTokenInSecrets") is not None:
        return []
    if old is not None and spec["tokenRequests"] == (old.get("spec") or {}).get("tokenRequests"):
        return []
    return [
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true"
        " to prevent possible logging of tokens in volume attributes"
    ]


def validate_node(obj: Object) -> list[FieldError]:
    """Validate a CSINode."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
        path, name = f"spec.drivers[{i}]", driver.get("name") or ""
        errors += csi_driver_name(name, f"{path}.name") if name else [field.required(f"{path}.name")]
        errors += _node_id(driver.get("nodeID") or "", f"{path}.nodeID")
        errors += not_negative((driver.get("allocatable") or {}).get("count"), f"{path}.allocatable.count")
        if name in seen:
            errors.append(field.duplicate(f"{path}.name", name))
        seen.add(name)
        errors += _topology_keys(driver.get("topologyKeys") or [], path)
    return errors


def _node_id(value: str, path: str) -> list[FieldError]:
    if not value:
        return [field.required(path)]
    return [field.invalid(path, value, f"must be {_NODE_ID} characters or less")] if len(value.encode()) > _NODE_ID else []


def _topology_keys(keys: list[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    repeated_indexes = repeated(keys)
    for i, key in enumerate(keys):
        if not key:
            errors.append(field.required(path))
        if i in repeated_indexes:
            errors.append(field.duplicate(path, key))
        errors += qualified_name(key, path)
    return errors


def validate_node_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated CSINode.

    Drivers may be added and removed; of an existing driver only allocatable may change.
    """
    new_drivers = {d.get("name"): d for d in (new.get("spec") or {}).get("drivers") or ()}
    errors = validate_node(new)
    for old_driver in (old.get("spec") or {}).get("drivers") or ():
        new_driver: Any = new_drivers.get(old_driver.get("name"))
        if new_driver is not None and not same(_driver(new_driver), _driver(old_driver)):
            errors.append(field.invalid("spec.drivers", _driver(new_driver), "field is immutable"))
    return errors


def _driver(driver: Object) -> Object:
    """Return a driver as upstream's internal struct prints, without allocatable, which may change."""
    return {
        "Name": driver.get("name") or "",
        "NodeID": driver.get("nodeID") or "",
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }


def validate_capacity(obj: Object) -> list[FieldError]:
    """Validate a CSIStorageCapacity."""
    errors = validate_label_selector(obj.get("nodeTopology"), "nodeTopology")
    errors += dns_subdomain(obj.get("storageClassName") or "", "storageClassName")
    if (capacity := obj.get("capacity")) is not None:
        errors += quantities.not_negative(quantities.quantity(capacity), "capacity")
    return errors


def validate_capacity_update(new: Object, old: Object) -> list[FieldError]:
    """Reject changes of nodeTopology and storageClassName."""
    topology, name = new.get("nodeTopology"), new.get("storageClassName") or ""
    errors = shown.immutable(topology, old.get("nodeTopology"), "nodeTopology", shown.selector(topology))
    return errors + immutable(name, old.get("storageClassName") or "", "storageClassName")
