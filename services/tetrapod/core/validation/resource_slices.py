"""ResourceSlice (upstream: pkg/apis/resource/validation/validation.go)."""

from __future__ import annotations

import re
from typing import Any, Final

from tetrapod.core.validation.devices import Complaints, binding, pool_name, qualified, taint
from tetrapod.core.validation.names import complaints, dns_label, immutable
from tetrapod.core.validation.scheduling import node_selector
from tetrapod.core.validation.volume_sources import csi_driver_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain

_MOST_DEVICES: Final = 128
_MOST_WITH_TAINTS: Final = 64
_MOST_ATTRIBUTES: Final = 32
_LONGEST_VALUE: Final = 64
_VALUES: Final = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_VALUE_NAMES: Final = ", ".join(f"`{name}`" for name in _VALUES)
_SELECTIONS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_SELECTION: Final = f"exactly one of {', '.join(f'`{name}`' for name in _SELECTIONS)} is required"
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRE_RELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = "[0-9a-zA-Z-]+"
_semver: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
).fullmatch


def validate(obj: Object) -> list[FieldError]:
    return _validate(obj.get("spec") or {}, None)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return _validate(new.get("spec") or {}, old.get("spec") or {})


def _validate(spec: Object, before: Object | None) -> list[FieldError]:
    found = Complaints(csi_driver_name(spec.get("driver") or "", "spec.driver"))
    pool = spec.get("pool") or {}
    found.written += _pool(pool)
    if before is not None:
        found.written += immutable(pool.get("name"), (before.get("pool") or {}).get("name"), "spec.pool.name")
        found.written += immutable(spec.get("driver"), before.get("driver"), "spec.driver")
        found.written += immutable(spec.get("nodeName"), before.get("nodeName"), "spec.nodeName")
    found.written += _selection(spec)
    devices = spec.get("devices") or []
    _devices(devices, found)
    for i, counters in enumerate(spec.get("sharedCounters") or ()):
        at = f"spec.sharedCounters[{i}]"
        name = counters.get("name") or ""
        found.declared += dns_label(name, f"{at}.name") if name else [field.required(f"{at}.name")]
        if not counters.get("counters"):
            found.written.append(field.required(f"{at}.counters"))
    return found.all()


def _pool(pool: Object) -> list[FieldError]:
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    errors = pool_name(pool.get("name") or "", "spec.pool.name")
    if count <= 0:
        errors.append(field.invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(field.invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    return errors


def _selection(spec: Object) -> list[FieldError]:
    """Which nodes have the devices: said in one way."""
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
            errors += complaints(is_dns1123_subdomain, value, "spec.nodeName") if value else [empty]
        elif name == "nodeSelector":
            errors += node_selector(value, "spec.nodeSelector")
            terms = value.get("nodeSelectorTerms")
            if len(terms or ()) != 1:
                errors.append(field.invalid("spec.nodeSelector.nodeSelectorTerms", terms, "must have exactly one node selector term"))
        elif not value:
            errors.append(field.invalid(f"spec.{name}", False, "must be either unset or set to true"))
    if not chosen:
        errors.append(field.required("spec", _ONE_SELECTION))
    elif len(chosen) > 1:
        errors.append(field.invalid("spec", f"{{{', '.join(chosen)}}}", f"{_ONE_SELECTION}, but multiple fields are set"))
    return errors


def _devices(devices: list[Object], found: Complaints) -> None:
    most = _MOST_WITH_TAINTS if any(d.get("taints") or d.get("consumesCounters") for d in devices) else _MOST_DEVICES
    if len(devices) > most:
        found.written.append(field.too_many("spec.devices", len(devices), most))
        return
    for i, device in enumerate(devices):
        _device(device, f"spec.devices[{i}]", found)
    names = [d.get("name") or "" for d in devices]
    found.written += [field.duplicate(f"spec.devices[{i}]", name) for i, name in enumerate(names) if name in names[:i]]


def _device(device: Object, path: str, found: Complaints) -> None:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    found.written += dns_label(device.get("name") or "", f"{path}.name")
    if (total := len(attributes) + len(capacity)) > _MOST_ATTRIBUTES:
        text = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
        found.written.append(field.invalid(path, total, text))
    for name, attribute in attributes.items():
        found.written += qualified(name, f"{path}.attributes")
        _attribute(attribute, f"{path}.attributes[{name}]", found)
    for name, amount in capacity.items():
        found.written += qualified(name, f"{path}.capacity")
        if amount.get("requestPolicy") is not None and not device.get("allowMultipleAllocations"):
            at = f"{path}.capacity[{name}].requestPolicy"
            found.written.append(field.forbidden(at, "allowMultipleAllocations must be true"))
    for i, given in enumerate(device.get("taints") or ()):
        taint(given, f"{path}.taints[{i}]", found)
    for i, consumed in enumerate(device.get("consumesCounters") or ()):
        at, name = f"{path}.consumesCounters[{i}]", consumed.get("counterSet") or ""
        found.declared += dns_label(name, f"{at}.counterSet") if name else [field.required(f"{at}.counterSet")]
        if not consumed.get("counters"):
            found.declared.append(field.required(f"{at}.counters"))
    found.written += binding(device, path)


def _attribute(attribute: Object, path: str, found: Complaints) -> None:
    given = [name for name in _VALUES if attribute.get(name) is not None]
    if (version := attribute.get("version")) is not None and not _semver(version):
        found.written.append(field.invalid(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0"))
    for name in ("string", "version"):
        if len(attribute.get(name) or "") > _LONGEST_VALUE:
            found.written.append(field.too_long(f"{path}.{name}", _LONGEST_VALUE))
    if not given:
        found.declared.append(field.invalid(path, "", f"must specify one of: {_VALUE_NAMES}"))
    elif len(given) > 1:
        found.declared.append(field.invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {_VALUE_NAMES}"))
