"""Validation of the status of a ResourceClaim: allocation, consumers (reservedFor) and device status.

Upstream: pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

import re
from typing import Final

from tetrapod.core.podspec.scheduling import node_selector
from tetrapod.core.resource.device_rules import (
    ErrorLists,
    binding,
    configuration,
    declared_driver,
    declared_pool,
    json_object,
    pool_name,
    skipped_operations,
)
from tetrapod.core.resource.resource_claims.validation import MOST, reference, references, request_names, toleration
from tetrapod.core.validation.conditions import FIELDS, conditions
from tetrapod.core.validation.names import csi_driver_name, dns_label
from tetrapod.machinery import field
from tetrapod.machinery.equality import json_key, same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.ip_addresses import parse_cidr_sloppy, unmapped
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.raw_extensions import ALLOCATION_PARAMETERS, same_texts

_MOST_USERS: Final = 256
_MOST_ADDRESSES: Final = 16
_MOST_CONDITIONS: Final = 8
_USER_KEYS: Final = ("apiGroup", "resource", "name", "uid")
_KEYS: Final = ("driver", "pool", "device", "shareID")
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NO_INTERFACE: Final = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
_NO_UUID: Final = "must be a lowercase UUID in 8-4-4-4-12 format"


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated status of a ResourceClaim. A stored allocation is immutable.

    - A new allocation is valid and refers to the claim's requests.
    - reservedFor requires an allocation, has unique and complete entries, and gets no new ones while the claim is being
      deleted.
    - Each entry of `devices` is valid, unique, and about an allocated device.
    """
    status, old_status = new.get("status") or {}, old.get("status") or {}
    errors = ErrorLists()
    allocation, reserved = status.get("allocation"), status.get("reservedFor") or []
    for i, user in enumerate(reserved if errors.within_limit(reserved, "status.reservedFor", _MOST_USERS) else ()):
        at = f"status.reservedFor[{i}]"
        errors.written += [field.required(f"{at}.{key}") for key in ("resource", "name", "uid") if not user.get(key)]
    devices, device_errors = status.get("devices") or [], ErrorLists()
    allocated = set(map(_device_key, ((allocation or {}).get("devices") or {}).get("results") or ()))
    for i, device in enumerate(devices):
        _device_status(device, allocated, f"status.devices[{i}]", device_errors)
    errors.written += device_errors.written
    if reserved and allocation is None:
        errors.written.append(field.forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif reserved and new["metadata"].get("deletionTimestamp") and _adds(old_status.get("reservedFor") or [], reserved):
        text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.written.append(field.forbidden("status.reservedFor", text))
    if allocation is not None and old_status.get("allocation") is not None:
        if not (same(allocation, old_status["allocation"]) and same_texts(new, old, ALLOCATION_PARAMETERS)):
            errors.declared.append(field.invalid("status.allocation", None, "field cannot be modified once set"))
    elif allocation is not None:
        _allocation(
            allocation, request_names(((new.get("spec") or {}).get("devices") or {}).get("requests") or []), errors
        )
    users = [{key: u.get(key) or "" for key in _USER_KEYS if u.get(key) or key != "apiGroup"} for u in reserved]
    if len(reserved) <= _MOST_USERS:
        errors.unique([u.get("uid") or "" for u in reserved], "status.reservedFor", users)
    errors.unique(map(_device_key, devices), "status.devices", map(_shown, devices))
    errors.declared += device_errors.declared
    return errors.all()


def _adds(old_items: list[Object], new_items: list[Object]) -> bool:
    """Return whether `new_items` has an element that `old_items` does not have."""
    return not {json_key(user) for user in new_items} <= {json_key(user) for user in old_items}


def _allocation(allocation: Object, names: set[str], collected: ErrorLists) -> None:
    devices, path = allocation.get("devices") or {}, "status.allocation.devices"
    results = devices.get("results") or []
    for i, result in enumerate(results if collected.within_limit(results, f"{path}.results", MOST) else ()):
        at = f"{path}.results[{i}]"
        reference(result.get("request") or "", names, f"{at}.request", collected)
        declared_driver(result.get("driver") or "", f"{at}.driver", collected)
        collected.declared += declared_pool(result.get("pool") or "", f"{at}.pool")
        collected.written += dns_label(result.get("device") or "", f"{at}.device")
        for j, given in enumerate(result.get("tolerations") or ()):
            toleration(given, f"{at}.tolerations[{j}]", collected)
        binding(result, at, collected)
        collected.declared += _uuid(result.get("shareID"), f"{at}.shareID")
        skipped_operations(result.get("skipNodeOperations") or [], f"{at}.skipNodeOperations", collected)
    configs = devices.get("config") or []
    for i, config in enumerate(configs if collected.within_limit(configs, f"{path}.config", 2 * MOST) else ()):
        at, source = f"{path}.config[{i}]", config.get("source") or ""
        if not source:
            collected.declared.append(field.required(f"{at}.source"))
        elif source not in ("FromClaim", "FromClass"):
            collected.declared.append(field.not_supported(f"{at}.source", source, ["FromClaim", "FromClass"]))
        references(config.get("requests") or [], names, f"{at}.requests", collected)
        configuration(config, at, collected)
    if (selector := allocation.get("nodeSelector")) is not None:
        collected.written += node_selector(selector, "status.allocation.nodeSelector")


def _uuid(value: str | None, path: str) -> list[FieldError]:
    return [] if value is None or _UUID.fullmatch(value) else [field.invalid(path, value, _NO_UUID)]


def _device_key(device: Object) -> tuple[str, ...]:
    share = device.get("shareID")
    return (*(device.get(name) or "" for name in _KEYS[:3]), *([share] if share is not None else []))


def _internal(device: Object) -> Object:
    """Return the key of a device with the Go field names of upstream's SharedDeviceID, for errors."""
    return {name[0].upper() + name[1:]: device.get(name) or "" for name in _KEYS}


def _shown(device: Object) -> Object:
    """Return an element of status.devices as upstream's errors print it.

    The fields are in the order of upstream's struct. Conditions are included even if they are empty.
    """
    shown: Object = {
        name: device.get(name) for name in (*_KEYS, "conditions", "data") if name in device or name == "conditions"
    }
    if shown["conditions"]:
        shown["conditions"] = [{name: c[name] for name in FIELDS if name in c} for c in shown["conditions"]]
    if (network := device.get("networkData")) is not None:
        shown["networkData"] = {
            name: network[name] for name in ("interfaceName", "ips", "hardwareAddress") if name in network
        }
    return shown


def _device_status(device: Object, allocated: set[tuple[str, ...]], path: str, collected: ErrorLists) -> None:
    key = _device_key(device)
    collected.written += (
        csi_driver_name(key[0], f"{path}.driver")
        + pool_name(key[1], f"{path}.pool")
        + dns_label(key[2], f"{path}.device")
    )
    collected.declared += _uuid(device.get("shareID"), f"{path}.shareID")
    if key not in allocated:
        collected.written.append(field.invalid(path, _internal(device), "must be an allocated device in the claim"))
    listed = device.get("conditions") or []
    if len(listed) > _MOST_CONDITIONS:
        collected.written.append(field.too_many(f"{path}.conditions", len(listed), _MOST_CONDITIONS))
    collected.written += conditions(listed, f"{path}.conditions")
    if (data := device.get("data")) is not None:
        collected.written += json_object(data, f"{path}.data")
    _network_data(device.get("networkData") or {}, f"{path}.networkData", collected)


def _network_data(data: Object, path: str, collected: ErrorLists) -> None:
    addresses = data.get("ips") or []
    for key, limit in (("interfaceName", 256), ("ips", 0), ("hardwareAddress", 128)):
        if key == "ips" and collected.within_limit(addresses, f"{path}.ips", _MOST_ADDRESSES):
            collected.unique(addresses, f"{path}.ips")
            for i, address in enumerate(addresses):
                collected.written += _interface_address(address, f"{path}.ips[{i}]")
        elif key != "ips" and len((data.get(key) or "").encode()) > limit:
            collected.declared.append(field.too_long(f"{path}.{key}", limit))


def _interface_address(value: str, path: str) -> list[FieldError]:
    """Validate an IP address with a prefix length, in canonical form. Upstream: IsValidInterfaceAddress.

    Args:
        path: the field path of the address, for the errors.
    """
    parsed = parse_cidr_sloppy(value)
    if parsed is None:
        return [field.invalid(path, value, _NO_INTERFACE)]
    address, network = parsed
    shown = unmapped(address)
    canonical = f"{shown}/{network.prefixlen - (96 if shown.version == 4 and network.prefixlen > 32 else 0)}"
    return (
        [] if value == canonical else [field.invalid(path, value, f"must be in canonical form ({go_quote(canonical)})")]
    )
