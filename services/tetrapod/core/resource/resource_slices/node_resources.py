"""Validation of the resources of nodes that devices provide or use (nodeAllocatableResources of a device).

Upstream: pkg/apis/resource/validation/validation.go, validateNodeAllocatableResources.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tetrapod.core.resource.device_rules import ErrorLists
from tetrapod.core.validation.quantities import is_node_allocatable, quantity
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_SOURCES: Final = ("capacityKey", "deviceMultiplier")
_SOURCE_NAMES: Final = ", ".join(f"`{name}`" for name in _SOURCES)


def node_resources(device: Object, path: str, collected: ErrorLists, *, declared: bool) -> None:
    """Validate nodeAllocatableResources of a device, adding errors to `collected`.

    Each resource is cpu, memory or huge pages, and has a mapping or an overhead.

    Args:
        path: the field path of the device, for the errors.
        declared: whether the rules that upstream declares in the schema apply too. They do not if the list of devices
            is unchanged.
    """
    for name, resource in (device.get("nodeAllocatableResources") or {}).items():
        at = field.key(f"{path}.nodeAllocatableResources", name)
        if not is_node_allocatable(name):
            collected.written.append(field.invalid(at, name, "must be a node allocatable resource name"))
        mapping, overhead = resource.get("mapping"), resource.get("overhead")
        if mapping is None and overhead is None:
            collected.written.append(field.required(at, "at least one of mapping or overhead must be set"))
        if mapping is not None:
            collected.written += _mapping(mapping, device.get("capacity") or {}, f"{at}.mapping")
            if declared:
                collected.declared += _one_source(mapping, f"{at}.mapping")
        if overhead is not None:
            collected.written += _overhead(overhead, f"{at}.overhead")


def devices_change(spec: Object, existing: Object | None) -> bool:
    """Return whether the devices of a slice differ from the stored ones.

    Args:
        spec: the spec of the slice.
        existing: the stored spec, or None on create.
    """
    return existing is None or not same(spec.get("devices"), existing.get("devices"))


def _mapping(mapping: Object, capacities: Collection[str], path: str) -> list[FieldError]:
    key, multiplier = mapping.get("capacityKey"), mapping.get("capacityMultiplier")
    errors: list[FieldError] = []
    if key is not None:
        if not key:
            errors.append(field.invalid(f"{path}.capacityKey", "", "capacityKey must not be an empty string"))
        elif key not in capacities:
            errors.append(field.not_found(f"{path}.capacityKey", key))
        if multiplier is None:
            text = "capacityMultiplier is required when capacityKey is set"
            errors.append(field.required(f"{path}.capacityMultiplier", text))
        else:
            errors += _positive(multiplier, f"{path}.capacityMultiplier")
    if (multiplier_of_devices := mapping.get("deviceMultiplier")) is not None:
        errors += _positive(multiplier_of_devices, f"{path}.deviceMultiplier")
    if multiplier is not None and key is None:
        text = "capacityKey is required when capacityMultiplier is set"
        errors.append(field.required(f"{path}.capacityKey", text))
    return errors


def _positive(value: object, path: str) -> list[FieldError]:
    factor = quantity(value)
    return [] if factor.sign > 0 else [field.invalid(path, str(factor), "must be positive")]


def _one_source(mapping: Object, path: str) -> list[FieldError]:
    given = [name for name in _SOURCES if mapping.get(name) is not None]
    if not given:
        return [field.invalid(path, "", f"must specify one of: {_SOURCE_NAMES}")]
    if len(given) > 1:
        text = f"must specify exactly one of: {_SOURCE_NAMES}"
        return [field.invalid(path, f"{{{', '.join(given)}}}", text)]
    return []


def _overhead(overhead: Object, path: str) -> list[FieldError]:
    given = {name: overhead[name] for name in ("perPod", "perContainer") if overhead.get(name) is not None}
    if not given:
        return [field.invalid(path, "", "at least one of perPod or perContainer must be set")]
    amounts = {name: quantity(value) for name, value in given.items()}
    return [
        field.invalid(f"{path}.{name}", str(amount), "must be non-negative")
        for name, amount in amounts.items()
        if amount.sign < 0
    ]
