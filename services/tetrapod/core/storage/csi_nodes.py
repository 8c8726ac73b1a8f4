"""The definition of CSINodes, with their strategy, validation and table columns.

Upstream: pkg/registry/storage/csinode/strategy.go and pkg/apis/storage/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import csi_driver_name, not_negative, qualified_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated, same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_NODE_ID: Final = 256

TABLE: Final = TableConvertor(
    (NAME, Column("Drivers", "integer"), AGE),
    lambda obj: [name_of(obj), len(spec_of(obj).get("drivers") or []), age(obj)],
)


class CSINodeStatusStrategy(StatusStrategy):
    """The strategy of `csinodes/status`.

    It drops status.storageHealth unless the stored object has it, because the gate CSIVolumeHealth is off.

    Upstream: csinode/strategy.go.
    """

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        if not (old.get("status") or {}).get("storageHealth"):
            (new.get("status") or {}).pop("storageHealth", None)


def definition() -> ResourceDefinition:
    """Return the resource definition of CSINodes: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        whole_update_validator=validate_update,
        revalidates_generate_name=True,
        has_status=True,
        allow_unconditional_update=False,
        return_deleted_object=True,
    )
    status = CSINodeStatusStrategy(strategy, keep_metadata=ALL_METADATA)
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
