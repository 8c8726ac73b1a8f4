"""ResourcePoolStatusRequests, which ask for a summary of the devices in the pools of a driver.

Upstream: pkg/registry/resource/resourcepoolstatusrequest/strategy.go, pkg/apis/resource/validation and the declarations
in k8s.io/api/resource/v1alpha3.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import NAME, NONE, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.resource import GROUP
from tetrapod.core.resource.device_rules import ErrorLists, declared_pool, partition_type
from tetrapod.core.validation.conditions import FIELDS, conditions
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import IMMUTABLE, errors_from, fixed
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_long_name, is_long_name_caseless
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import since

_DEFAULT_TYPE: Final = "defaultPartitionTypeAttribute"
_DEFAULT_LIMIT: Final = 100
_LARGEST_LIMIT: Final = 1000
_MOST_POOLS: Final = 1000
_MOST_CONDITIONS: Final = 10
_MOST_TYPES: Final = 32
_LONGEST_ERROR: Final = 256
_COUNTS: Final = ("totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices")


def definition() -> ResourceDefinition:
    """Return the resource definition of ResourcePoolStatusRequests: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=set_defaults,
        validator=validate,
        whole_update_validator=validate_update,
        has_status=True,
        allow_unconditional_update=False,
        return_deleted_object=True,
        gated_fields=FieldGates(GatedFields("DRAPartitionableDevicesType", (f"spec.{_DEFAULT_TYPE}",))),
    )
    strategy.initial_status = None  # a request without a status has not been processed
    return builtin(
        GROUP,
        "resourcepoolstatusrequests",
        strategy,
        versions=("v1alpha3",),
        table=TABLE,
        subresources={
            "status": StatusStrategy(strategy, keep_metadata=ALL_METADATA, validate=validate_status, tabular=False)
        },
    )


def set_defaults(obj: Object) -> None:
    """Set the default of spec.limit, the most pools in the status, to 100, in place."""
    spec = obj.setdefault("spec", {})
    if spec.get("limit") is None:
        spec["limit"] = _DEFAULT_LIMIT


def validate(obj: Object) -> list[FieldError]:
    """Validate a new ResourcePoolStatusRequest.

    driver is a valid driver name and poolName, if it is set, a valid pool name. limit is from 1 to 1000.
    defaultPartitionTypeAttribute is the full name of an attribute.
    """
    spec = obj.get("spec") or {}
    errors = _driver(spec.get("driver") or "", "spec.driver")
    if (pool := spec.get("poolName")) is not None:
        path = "spec.poolName"
        errors += declared_pool(pool, path) if pool else [field.invalid(path, "", "segment 0: must not be empty")]
    limit = spec["limit"]
    if limit > _LARGEST_LIMIT:
        errors.append(field.invalid("spec.limit", limit, f"must be less than or equal to {_LARGEST_LIMIT}"))
    errors += _at_least(limit, 1, "spec.limit")
    return errors + partition_type(spec.get(_DEFAULT_TYPE), None, f"spec.{_DEFAULT_TYPE}")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Reject a change of the spec, which is immutable."""
    return fixed(new.get("spec"), old.get("spec"), "spec")


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the status, which is immutable once it is set.

    It has a poolCount, at most 1000 pools (`_pool`), and at most 10 valid conditions. A changed status is validated
    too, except for its parts that are unchanged and the form of its conditions.
    """
    status, old_status = new.get("status"), old.get("status")
    if status is None:
        return [] if old_status is None else [field.invalid("status", None, IMMUTABLE)]
    errors = ErrorLists()
    listed, pools = status.get("conditions") or [], status.get("pools") or []
    if old_status is None:
        errors.written += conditions(listed, "status.conditions")
    elif same(status, old_status):
        return []
    else:
        errors.written.append(field.invalid("status", _shown(status), IMMUTABLE))
    stored = old_status or {}
    if old_status is None or status.get("poolCount") != stored.get("poolCount"):
        errors.declared += _required_count(status.get("poolCount"), "status.poolCount")
    if not same(pools, stored.get("pools") or []) and errors.within_limit(pools, "status.pools", _MOST_POOLS):
        for i, pool in enumerate(pools):
            _pool(pool, f"status.pools[{i}]", errors)
    if not same(listed, stored.get("conditions") or []):
        errors.within_limit(listed, "status.conditions", _MOST_CONDITIONS)
    return errors.all()


def _shown(status: Object) -> Object:
    """Return a status as upstream prints it in errors."""
    ordered = [{key: each[key] for key in FIELDS if key in each} for each in status.get("conditions") or ()]
    return internal("ResourcePoolStatusRequestStatus", {**status, "conditions": ordered or None})


def _driver(name: str, path: str) -> list[FieldError]:
    return errors_from(is_long_name_caseless, name, path) if name else [field.required(path)]


def _at_least(value: int, least: int, path: str) -> list[FieldError]:
    return [] if value >= least else [field.invalid(path, value, f"must be greater than or equal to {least}")]


def _required_count(value: int | None, path: str) -> list[FieldError]:
    return [field.required(path)] if value is None else _at_least(value, 0, path)


def _pool(pool: Object, path: str, errors: ErrorLists) -> None:
    """Validate the status of one pool at `path`, adding errors to `errors`.

    Names are valid, generation is required, counts are not negative, and the summaries of devices are valid.
    """
    declared = errors.declared
    declared += _driver(pool.get("driver") or "", f"{path}.driver")
    declared += declared_pool(pool.get("poolName") or "", f"{path}.poolName")
    generation = pool.get("generation") or 0
    declared += _at_least(generation, 0, f"{path}.generation") if generation else [field.required(f"{path}.generation")]
    for name, least in (("resourceSliceCount", 1), *((count, 0) for count in _COUNTS)):
        if (value := pool.get(name)) is not None:
            declared += _at_least(value, least, f"{path}.{name}")
    if (node := pool.get("nodeName")) is not None:
        declared += errors_from(is_long_name, node, f"{path}.nodeName")
    if len((pool.get("validationError") or "").encode()) > _LONGEST_ERROR:
        declared.append(field.too_long(f"{path}.validationError", _LONGEST_ERROR))
    _partitions(pool.get("partitionSummary") or [], f"{path}.partitionSummary", errors)
    if (summary := pool.get("shareableSummary")) is not None:
        _shareable(summary, f"{path}.shareableSummary", errors)


def _partitions(partitions: list[Object], path: str, errors: ErrorLists) -> None:
    if not errors.within_limit(partitions, path, _MOST_TYPES):
        return
    keys = [(partition.get("attribute") or "", partition.get("type") or "") for partition in partitions]
    errors.unique(keys, path, partitions)
    for i, partition in enumerate(partitions):
        errors.declared += [
            field.required(f"{path}[{i}].{name}") for name in ("attribute", "type") if not partition.get(name)
        ]
        for name in ("total", "allocatable"):
            errors.declared += _required_count(partition.get(name), f"{path}[{i}].{name}")


def _shareable(summary: Object, path: str, errors: ErrorLists) -> None:
    for name in ("fullyAvailableDevices", "partiallyAvailableDevices"):
        errors.declared += _required_count(summary.get(name), f"{path}.{name}")
    capacities = summary.get("capacity") or []
    if errors.within_limit(capacities, f"{path}.capacity", _MOST_TYPES):
        for i, capacity in enumerate(capacities):
            errors.declared += [
                field.required(f"{path}.capacity[{i}].{name}")
                for name in ("name", "total", "consumed", "available")
                if not capacity.get(name)
            ]


def _row(obj: Object) -> list[Any]:
    name, driver, status = name_of(obj), spec_of(obj).get("driver", ""), obj.get("status")
    if status is None:
        return [name, driver, *["-"] * 5, 0, "Pending", NONE]
    ended = next(
        (
            condition
            for condition in status.get("conditions") or ()
            if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        ),
        {"type": "Pending"},
    )
    state, pools, count = ended["type"], status.get("pools") or [], status.get("poolCount") or 0
    completed = since(ended.get("lastTransitionTime")) if state == "Complete" else NONE
    if state == "Complete" and count > len(pools):
        state = f"Complete ({len(pools)}/{count} pools)"
    if state == "Failed":
        return [name, driver, *["-"] * 5, count, state, completed]
    sums = [
        str(sum(pool.get(key) or 0 for pool in pools))
        for key in ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")
    ]
    failures = sum(pool.get("validationError") is not None for pool in pools)
    return [name, driver, *sums, str(failures), count, state, completed]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Driver"),
        Column("Total"),
        Column("Available"),
        Column("Allocated"),
        Column("Unavailable"),
        Column("Errors"),
        Column("Pools", "integer"),
        Column("Status"),
        Column("Completed"),
    ),
    _row,
)
