"""The definition of CSINodes, with their strategy, validation and table columns.

Upstream: pkg/registry/storage/csinode/strategy.go and pkg/apis/storage/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.conditions import condition_reason
from tetrapod.core.validation.names import csi_driver_name, not_negative, qualified_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated, same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_NODE_ID: Final = 256
_MOST_CONDITIONS: Final = 16
_LONGEST_REASON: Final = 256
_LONGEST_MESSAGE: Final = 1024
_STATES: Final = ("StorageDegraded", "StorageUnreachable")
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Filesystem", "Block")

TABLE: Final = TableConvertor(
    (NAME, Column("Drivers", "integer"), AGE),
    lambda obj: [name_of(obj), len(spec_of(obj).get("drivers") or []), age(obj)],
)


def definition() -> ResourceDefinition:
    """Return the resource definition of CSINodes: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        whole_update_validator=validate_update,
        revalidates_generate_name="before finalizers",
        has_status=True,
        allow_unconditional_update=False,
        return_deleted_object=True,
    )
    gated = FieldGates(GatedFields("CSIVolumeHealth", ("status.storageHealth",)))
    status = StatusStrategy(strategy, keep_metadata=ALL_METADATA, validate=validate_status, gated=gated)
    return builtin("storage.k8s.io", "csinodes", strategy, table=TABLE, subresources={"status": status})


def validate(obj: Object) -> list[FieldError]:
    """Validate the drivers of a new or updated CSINode.

    Each has a unique name, a valid nodeID and valid topology keys. The count of allocatable is not negative.
    """
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
    return (
        [field.invalid(path, value, f"must be {_NODE_ID} characters or less")] if len(value.encode()) > _NODE_ID else []
    )


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


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated CSINode.

    Drivers may be added and removed; of an existing driver only allocatable may change.
    """
    new_drivers = {d.get("name"): d for d in (new.get("spec") or {}).get("drivers") or ()}
    errors = validate(new)
    for old_driver in (old.get("spec") or {}).get("drivers") or ():
        new_driver: Any = new_drivers.get(old_driver.get("name"))
        if new_driver is not None and not same(_driver(new_driver), _driver(old_driver)):
            errors.append(field.invalid("spec.drivers", _driver(new_driver), "field is immutable"))
    return errors


def _driver(driver: Object) -> Object:
    """Return the immutable fields of a driver, for the comparison of two drivers and for the error text.

    The keys are the Go field names of upstream's internal struct (Name, NodeID, TopologyKeys, Allocatable), because its
    error text contains them. Allocatable may change, so it is always None.
    """
    return {
        "Name": driver.get("name") or "",
        "NodeID": driver.get("nodeID") or "",
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the health of the storage backends that a CSINode reports in its status. `old` is not used.

    The names of drivers are valid and unique. Each driver has at most 16 conditions.
    """
    listed, errors = (new.get("status") or {}).get("storageHealth") or [], list[FieldError]()
    names = [health.get("name") or "" for health in listed]
    repeated_indexes = repeated(names)
    for i, (name, health) in enumerate(zip(names, listed, strict=True)):
        path, conditions = f"status.storageHealth[{i}]", health.get("healthConditions") or []
        if i in repeated_indexes:
            errors.append(field.duplicate(path, name))
        errors += csi_driver_name(name, f"{path}.name") if name else [field.required(f"{path}.name")]
        if len(conditions) > _MOST_CONDITIONS:
            errors.append(field.too_many(f"{path}.healthConditions", len(conditions), _MOST_CONDITIONS))
            continue
        for j, condition in enumerate(conditions):
            errors += _health_condition(condition, f"{path}.healthConditions[{j}]")
    return errors


def _health_condition(condition: Object, path: str) -> list[FieldError]:
    status, reason = condition.get("status") or "", condition.get("reason") or ""
    errors = [] if status in _STATES else [field.not_supported(f"{path}.status", status, _STATES)]
    errors += condition_reason(reason, f"{path}.reason") if reason else [field.required(f"{path}.reason")]
    if len(reason.encode()) > _LONGEST_REASON:
        errors.append(field.too_long(f"{path}.reason", _LONGEST_REASON))
    if len((condition.get("message") or "").encode()) > _LONGEST_MESSAGE:
        errors.append(field.too_long(f"{path}.message", _LONGEST_MESSAGE))
    for name, known_values in (("accessMode", _ACCESS_MODES), ("volumeMode", _VOLUME_MODES)):
        value = condition.get(name)
        if value is not None and value not in known_values:
            errors.append(field.not_supported(f"{path}.{name}", value, known_values))
    return errors
