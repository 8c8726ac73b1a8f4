"""Validation of ResourceSlice.

Upstream: pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.podspec.scheduling import node_selector
from tetrapod.core.resource.device_rules import ErrorLists, partition_type, pool_name, qualified, skipped_operations
from tetrapod.core.resource.resource_slices.devices import check_devices, counters
from tetrapod.core.validation.differences import internal, internal_list
from tetrapod.core.validation.names import csi_driver_name, errors_from, immutable
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain, is_short_name

_SELECTIONS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_SELECTION: Final = f"exactly one of {', '.join(f'`{name}`' for name in _SELECTIONS)} is required"
_MOST_COUNTER_SETS: Final = 8


def validate(obj: Object) -> list[FieldError]:
    """Validate a new ResourceSlice.

    driver and pool are valid, exactly one field selects nodes (`_selection`), and either devices or sharedCounters are
    set. `check_devices` and `_counters` check these.
    """
    return _validate(obj.get("spec") or {}, None)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated ResourceSlice as a new one; driver, pool name and node name are immutable."""
    return _validate(new.get("spec") or {}, old.get("spec") or {})


def _validate(spec: Object, existing: Object | None) -> list[FieldError]:
    errors = ErrorLists(csi_driver_name(spec.get("driver") or "", "spec.driver"))
    pool = spec.get("pool") or {}
    errors.written += _pool(pool)
    if existing is not None:
        errors.written += immutable(pool.get("name"), (existing.get("pool") or {}).get("name"), "spec.pool.name")
        errors.written += immutable(spec.get("driver"), existing.get("driver"), "spec.driver")
        errors.written += immutable(spec.get("nodeName"), existing.get("nodeName"), "spec.nodeName", typed=True)
    errors.written += _selection(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        errors.written.append(field.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    check_devices(spec, existing, errors)
    _counters(spec.get("sharedCounters") or [], errors)
    _partition_type(spec, existing or {}, errors)
    skipped_operations(spec.get("skipNodeOperations") or [], "spec.skipNodeOperations", errors)
    return errors.all()


def _partition_type(spec: Object, existing: Object, errors: ErrorLists) -> None:
    """Validate partitionTypeAttribute of a slice, adding errors to `errors`.

    Each device that consumes counters has the attribute, which is a string.

    Args:
        spec: the spec of the slice.
        existing: the stored spec, or {} on create.
    """
    path, name = "spec.partitionTypeAttribute", spec.get("partitionTypeAttribute")
    if name is None:
        return
    errors.declared += partition_type(name, existing.get("partitionTypeAttribute"), path)
    devices = list(enumerate(spec.get("devices") or ()))
    if not any(device.get("consumesCounters") for _, device in devices):
        text = "may only be set on a slice which declares devices that consume counters"
        errors.written.append(field.invalid(path, name, text))
        return
    if [*qualified(name, path), *([] if "/" in name else [name])]:
        return  # the rules of the schema reject the name
    in_domain = name.removeprefix(f"{spec.get('driver') or ''}/")
    for i, device in devices:
        attributes = device.get("attributes") or {}
        at = field.key(f"spec.devices[{i}].attributes", name)
        attribute = attributes.get(name, attributes.get(in_domain))
        if not device.get("consumesCounters"):
            continue
        if attribute is None:
            text = "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
            errors.written.append(field.required(at, text))
        elif attribute.get("string") is None:
            text = "must be a string value because `partitionTypeAttribute` names this attribute"
            errors.written.append(field.invalid(at, internal("DeviceAttribute", attribute), text))


def _counters(listed: list[Object], collected: ErrorLists) -> None:
    path = "spec.sharedCounters"
    if len(listed) > _MOST_COUNTER_SETS:
        collected.declared.append(field.too_many(path, len(listed), _MOST_COUNTER_SETS))
        return
    shown = ({key: one[key] for key in ("name", "counters") if key in one} for one in listed)
    collected.unique([one.get("name") or "" for one in listed], path, shown)
    for i, counter_set in enumerate(listed):
        name = counter_set.get("name") or ""
        collected.declared += (
            errors_from(is_short_name, name, f"{path}[{i}].name") if name else [field.required(f"{path}[{i}].name")]
        )
        counters(counter_set.get("counters") or {}, f"{path}[{i}].counters", collected)


def _pool(pool: Object) -> list[FieldError]:
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    errors = pool_name(pool.get("name") or "", "spec.pool.name")
    if count <= 0:
        errors.append(field.invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(field.invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    return errors


def _selection(spec: Object) -> list[FieldError]:
    """Validate that exactly one field of a slice's spec says which nodes can access its devices.

    The fields are nodeName, nodeSelector with exactly one term, allNodes and perDeviceNodeSelection.
    """
    errors: list[FieldError] = []
    chosen = []
    for name in _SELECTIONS:
        value: Any = spec.get(name)
        if value is None:
            continue
        if name == "nodeSelector" or value:
            chosen.append(f"`{name}`")
        if name == "nodeName":
            empty = field.invalid("spec.nodeName", "", "must be either unset or set to a non-empty string")
            errors += errors_from(is_dns1123_subdomain, value, "spec.nodeName") if value else [empty]
        elif name == "nodeSelector":
            errors += node_selector(value, "spec.nodeSelector")
            terms = value.get("nodeSelectorTerms")
            if len(terms or ()) != 1:
                errors.append(
                    field.invalid(
                        "spec.nodeSelector.nodeSelectorTerms",
                        internal_list("NodeSelectorTerm", terms),
                        "must have exactly one node selector term",
                    )
                )
        elif not value:
            errors.append(field.invalid(f"spec.{name}", False, "must be either unset or set to true"))
    if not chosen:
        errors.append(field.required("spec", _ONE_SELECTION))
    elif len(chosen) > 1:
        errors.append(
            field.invalid("spec", f"{{{', '.join(chosen)}}}", f"{_ONE_SELECTION}, but multiple fields are set")
        )
    return errors
