"""Validation of the devices of a ResourceSlice.

Upstream: pkg/apis/resource/validation/validation.go, validateDevice.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tetrapod.core.podspec.scheduling import node_selector
from tetrapod.core.resource.device_rules import ErrorLists, binding, qualified, taint
from tetrapod.core.resource.resource_slices.capacities import capacity
from tetrapod.core.resource.resource_slices.node_resources import devices_change, node_resources
from tetrapod.core.validation.names import dns_label, errors_from
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain, is_short_name

_MOST_DEVICES: Final = 128
_MOST_ADVANCED: Final = 64
_MOST_ATTRIBUTES: Final = 32
_MOST_VALUES: Final = 48
_MOST_TAINTS: Final = 16
_MOST_CONSUMED: Final = 2
_MOST_COUNTERS: Final = 32
_MOST_GROUPS: Final = 2
_LONGEST_VALUE: Final = 64
_LONGEST_NAME: Final = 96
"""Bytes of a domain, a slash and an identifier."""
_ONE_NODE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required"
    " when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_NODE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_VALUES: Final = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_GO_VALUES: Final = {
    kind: f"{kind[0].upper()}{kind.removesuffix('s')[1:]}Value{'s' * kind.endswith('s')}" for kind in _VALUES
}
"""The name of each kind of value in Go, with which errors quote an attribute."""
_VALUE_NAMES: Final = ", ".join(f"`{name}`" for name in _VALUES)
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRE_RELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = "[0-9a-zA-Z-]+"
_semver: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
).fullmatch


def check_devices(spec: Object, existing: Object | None, collected: ErrorLists) -> None:
    """Validate the devices of a slice, adding errors to `collected`.

    Their number is limited, their names are unique, and each is valid (`_device`). Capacities and taints that equal
    those of the stored device with the same name are not validated again.

    Args:
        spec: the spec of the slice.
        existing: the stored spec, or None on create.
    """
    devices = spec.get("devices") or []
    advanced = any(d.get("taints") or d.get("consumesCounters") or _has_lists(d) for d in devices)
    most = _MOST_ADVANCED if advanced else _MOST_DEVICES
    if len(devices) > most:
        collected.written.append(field.too_many("spec.devices", len(devices), most))
        return
    old_devices = {d.get("name"): d for d in (existing or {}).get("devices") or ()}
    changed = devices_change(spec, existing)
    for i, device in enumerate(devices):
        _device(device, old_devices.get(device.get("name")), f"spec.devices[{i}]", collected)
        collected.written += _nodes(device, f"spec.devices[{i}]", chosen=bool(spec.get("perDeviceNodeSelection")))
        binding(device, f"spec.devices[{i}]", collected)
        node_resources(device, f"spec.devices[{i}]", collected, declared=changed)
    names = [d.get("name") or "" for d in devices]
    repeated_indexes = repeated(names)
    collected.written += [
        field.duplicate(f"spec.devices[{i}]", name) for i, name in enumerate(names) if i in repeated_indexes
    ]


def _has_lists(device: Object) -> bool:
    return any(
        a.get(kind) is not None
        for a in (device.get("attributes") or {}).values()
        for kind in ("ints", "bools", "strings", "versions")
    )


def _device(device: Object, existing: Object | None, path: str, collected: ErrorLists) -> None:
    """Validate one device, adding errors to `collected`.

    Its name is a DNS label. Names and values of attributes and capacities are valid and not too many. Consumed counters
    and taints are valid.

    Args:
        existing: the stored device with the same name, or None. Capacities and taints equal to its own are not
            validated again.
        path: the field path of the device, for the errors.
    """
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    collected.written += dns_label(device.get("name") or "", f"{path}.name")
    if (total := len(attributes) + len(capacities)) > _MOST_ATTRIBUTES:
        text = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
        collected.written.append(field.invalid(path, total, text))
    if (values := sum(map(_entries, attributes.values()))) > _MOST_VALUES:
        text = f"the total number of attribute values must not exceed {_MOST_VALUES}"
        collected.written.append(field.invalid(path, values, text))
    for name, attribute in attributes.items():
        collected.written += qualified(name, f"{path}.attributes")
        _attribute(attribute, f"{path}.attributes", name, collected)
    if existing is None or (existing.get("capacity") or {}) != capacities:
        for name, amount in capacities.items():
            collected.written += qualified(name, f"{path}.capacity")
            collected.written += capacity(
                amount, f"{path}.capacity[{_shortened(name)}]", shared=bool(device.get("allowMultipleAllocations"))
            )
    consumed, taints = ErrorLists(), device.get("taints") or []
    _consumed(device.get("consumesCounters") or [], f"{path}.consumesCounters", consumed)
    collected.declared += consumed.declared
    if existing is None or (existing.get("taints") or []) != taints:
        if len(taints) > _MOST_TAINTS:
            collected.written.append(field.too_many(f"{path}.taints", len(taints), _MOST_TAINTS))
        for i, device_taint in enumerate(taints[: _MOST_TAINTS if len(taints) <= _MOST_TAINTS else 0]):
            taint(device_taint, f"{path}.taints[{i}]", collected)
    collected.written += consumed.written


def _consumed(listed: list[Object], path: str, collected: ErrorLists) -> None:
    if len(listed) > _MOST_CONSUMED:
        collected.declared.append(field.too_many(path, len(listed), _MOST_CONSUMED))
        return
    collected.unique([one.get("counterSet") or "" for one in listed], path, listed)
    for i, consumption in enumerate(listed):
        at, name = f"{path}[{i}]", consumption.get("counterSet") or ""
        collected.declared += (
            errors_from(is_short_name, name, f"{at}.counterSet") if name else [field.required(f"{at}.counterSet")]
        )
        counters(consumption.get("counters") or {}, f"{at}.counters", collected)
        _groups(consumption.get("compatibilityGroups") or [], f"{at}.compatibilityGroups", collected)


def _groups(listed: list[str], path: str, collected: ErrorLists) -> None:
    if collected.within_limit(listed, path, _MOST_GROUPS):
        for i, name in enumerate(listed):
            collected.declared += errors_from(is_short_name, name, f"{path}[{i}]")
        collected.unique(listed, path)


def counters(given: Object, path: str, collected: ErrorLists) -> None:
    """Validate a map of counters by name: there must be at least one, and not too many, and their names must be valid.

    The values are not checked. Errors are added to `collected`.

    Args:
        given: the counters by name.
        path: the field path of the map, for the errors.
    """
    if not given:
        collected.declared.append(field.required(path))
    elif len(given) > _MOST_COUNTERS:
        collected.written.append(field.too_many(path, len(given), _MOST_COUNTERS))
    else:
        for name in given:
            collected.declared += errors_from(is_short_name, name, path)


def _nodes(device: Object, path: str, *, chosen: bool) -> list[FieldError]:
    """Validate the fields of a device that say which nodes can access it: nodeName, nodeSelector and allNodes.

    Args:
        path: the field path of the device, for the errors.
        chosen: whether the slice sets perDeviceNodeSelection; if so, exactly one field must be set, else none.
    """
    name, selector, everywhere = device.get("nodeName"), device.get("nodeSelector"), device.get("allNodes")
    if not chosen:
        return [field.invalid(path, None, _NO_NODE)] if (name, selector, everywhere) != (None, None, None) else []
    errors: list[FieldError] = []
    set_fields = []
    if name is not None:
        set_fields += ["`nodeName`"] if name else []
        empty = field.invalid(f"{path}.nodeName", "", "must not be empty")
        errors += errors_from(is_dns1123_subdomain, name, f"{path}.nodeName") if name else [empty]
    if selector is not None:
        set_fields.append("`nodeSelector`")
        errors += node_selector(selector, f"{path}.nodeSelector")
    if everywhere is not None:
        set_fields += ["`allNodes`"] if everywhere else []
        errors += (
            [] if everywhere else [field.invalid(f"{path}.allNodes", False, "must be either unset or set to true")]
        )
    if not set_fields:
        errors.append(field.required(path, _ONE_NODE))
    elif len(set_fields) > 1:
        errors.append(field.invalid(path, f"{{{', '.join(set_fields)}}}", _ONE_NODE))
    return errors


def _entries(attribute: Object) -> int:
    return sum(len(attribute.get(kind) or ()) for kind in ("ints", "bools", "strings", "versions")) or 1


def _attribute(attribute: Object, path: str, name: str, collected: ErrorLists) -> None:
    """Validate an attribute of a device: exactly one value is set, and it has a valid form.

    Args:
        path: the field path of the map of attributes, for the errors.
        name: the attribute's name. Hand-written errors shorten a long one, declared errors do not.
    """
    given = [kind for kind in _VALUES if attribute.get(kind) is not None]
    path, declared_path = f"{path}[{_shortened(name)}]", f"{path}[{name}]"
    collected.written += _text(attribute.get("string"), f"{path}.string") + _version(
        attribute.get("version"), f"{path}.version"
    )
    for kind in ("bools", "ints", "strings", "versions"):
        if attribute.get(kind) == []:
            collected.written.append(field.invalid(f"{path}.{kind}", [], "must not be empty if specified"))
    for i, item in enumerate(attribute.get("strings") or ()):
        collected.declared += _text(item, f"{declared_path}.strings[{i}]")
    for i, item in enumerate(attribute.get("versions") or ()):
        collected.written += _version(item, f"{path}.versions[{i}]")
    if (
        len(given) != 1 and path != declared_path
    ):  # the declared error has another path, so it does not replace this one
        value = {_GO_VALUES[kind]: attribute.get(kind) for kind in _VALUES} if given else ""
        collected.written.append(field.invalid(path, value, "exactly one value must be specified"))
    if not given:
        collected.declared.append(field.invalid(declared_path, "", f"must specify one of: {_VALUE_NAMES}"))
    elif len(given) > 1:
        collected.declared.append(
            field.invalid(declared_path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {_VALUE_NAMES}")
        )


def _shortened(name: str) -> str:
    """Return a name of an attribute or capacity as field paths of hand-written errors quote it.

    Upstream: pkg/apis/resource/validation/validation.go, truncateIfTooLong.
    """
    raw = name.encode()
    if len(raw) <= _LONGEST_NAME:
        return name
    kept = _LONGEST_NAME - len("...")
    return (raw[: (kept + 1) // 2] + b"..." + raw[-(kept // 2) :]).decode(errors="replace")


def _text(value: Any, path: str) -> list[FieldError]:
    return [field.too_long(path, _LONGEST_VALUE)] if len((value or "").encode()) > _LONGEST_VALUE else []


def _version(value: Any, path: str) -> list[FieldError]:
    if value is None:
        return []
    errors = (
        [] if _semver(value) else [field.invalid(path, value, "must be a string compatible with semver.org spec 2.0.0")]
    )
    return errors + _text(value, path)
