"""ResourceClaim, ResourceClaimTemplate, DeviceClass and DeviceTaintRule (upstream: pkg/apis/resource/validation/validation.go)."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.validation.conditions import conditions
from tetrapod.core.validation.devices import (
    EFFECTS,
    Complaints,
    binding,
    configuration,
    declared_driver,
    pool_name,
    qualified,
    selectors,
    taint,
)
from tetrapod.core.validation.names import IMMUTABLE, complaints, dns_label, dns_subdomain
from tetrapod.core.validation.scheduling import node_selector
from tetrapod.core.validation.shown import same
from tetrapod.core.validation.volume_sources import csi_driver_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain, is_qualified_name, is_valid_label_value

_ONE_KIND: Final = "exactly one of `exactly` or `firstAvailable` is required"
_REFERENCE: Final = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_ONE_ATTRIBUTE: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_NO_DOMAIN: Final = "a fully qualified name must be a domain and a name separated by a slash"
_OPERATORS: Final = frozenset({"Equal", "Exists"})
_MODES: Final = frozenset({"All", "ExactCount"})
_ORDER: Final = {
    "request": ("name", "exactly", "firstAvailable"),
    "exactly": ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity"),
    "sub": ("name", "deviceClassName", "selectors", "allocationMode", "count", "tolerations", "capacity"),
    "toleration": ("key", "operator", "value", "effect", "tolerationSeconds"),
}


def validate(obj: Object) -> list[FieldError]:
    found = Complaints()
    _devices((obj.get("spec") or {}).get("devices") or {}, "spec.devices", found)
    return found.all()


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return [] if same(new.get("spec"), old.get("spec")) else [field.invalid("spec", None, IMMUTABLE)]


def validate_template(obj: Object) -> list[FieldError]:
    found = Complaints()
    inner = (obj.get("spec") or {}).get("spec") or {}
    _devices(inner.get("devices") or {}, "spec.spec.devices", found)
    return found.all()


def _devices(devices: Object, path: str, found: Complaints) -> None:
    requests = devices.get("requests") or []
    found.once([r.get("name") or "" for r in requests], f"{path}.requests", map(_shown_request, requests))
    for i, request in enumerate(requests):
        _request(request, f"{path}.requests[{i}]", found)
    names = _request_names(requests)
    for i, constraint in enumerate(devices.get("constraints") or ()):
        _constraint(constraint, names, f"{path}.constraints[{i}]", found)
    for i, config in enumerate(devices.get("config") or ()):
        _references(config.get("requests") or [], names, f"{path}.config[{i}].requests", found)
        configuration(config, f"{path}.config[{i}]", found)


def _request_names(requests: list[Object]) -> set[str]:
    names = {r.get("name") or "" for r in requests}
    return names | {f"{r.get('name')}/{sub.get('name')}" for r in requests for sub in r.get("firstAvailable") or ()}


def _shown(value: Object, kind: str, **needed: Any) -> Object:
    given = {**needed, **value}
    shown = {key: given[key] for key in _ORDER[kind] if given.get(key) is not None}
    if "tolerations" in shown:
        shown["tolerations"] = [_shown(t, "toleration") for t in shown["tolerations"]]
    return shown


def _shown_request(request: Object) -> Object:
    shown = _shown(request, "request", name="")
    if "exactly" in shown:
        shown["exactly"] = _shown(shown["exactly"], "exactly", deviceClassName="")
    if "firstAvailable" in shown:
        shown["firstAvailable"] = [_shown(sub, "sub", name="", deviceClassName="") for sub in shown["firstAvailable"]]
    return shown


def _request(request: Object, path: str, found: Complaints) -> None:
    exactly, first = request.get("exactly"), request.get("firstAvailable") or []
    found.written += dns_label(request.get("name") or "", f"{path}.name")
    if exactly is not None and first:
        found.written.append(field.invalid(path, None, f"{_ONE_KIND}, but multiple fields are set"))
    elif exactly is not None:
        found.written += _class_name(exactly, f"{path}.exactly.deviceClassName")
        _wanted(exactly, f"{path}.exactly", found)
    elif first:
        at = f"{path}.firstAvailable"
        shown = (_shown(sub, "sub", name="", deviceClassName="") for sub in first)
        found.once([sub.get("name") or "" for sub in first], at, shown)
        for i, sub in enumerate(first):
            found.written += dns_label(sub.get("name") or "", f"{at}[{i}].name")
            found.declared += _class_name(sub, f"{at}[{i}].deviceClassName")
            _wanted(sub, f"{at}[{i}]", found)
    else:
        found.written.append(field.required(path, _ONE_KIND))


def _class_name(request: Object, path: str) -> list[FieldError]:
    name = request.get("deviceClassName") or ""
    return dns_subdomain(name, path) if name else [field.required(path)]


def _wanted(request: Object, path: str, found: Complaints) -> None:
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    found.written += selectors(request.get("selectors") or [], f"{path}.selectors")
    if mode == "All" and count:
        found.written.append(field.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        found.written.append(field.invalid(f"{path}.count", count, "must be greater than zero"))
    elif mode not in _MODES:
        found.declared.append(field.not_supported(f"{path}.allocationMode", mode, _MODES))
    for i, toleration in enumerate(request.get("tolerations") or ()):
        _toleration(toleration, f"{path}.tolerations[{i}]", found)


def _toleration(toleration: Object, path: str, found: Complaints) -> None:
    operator, value, effect = (toleration.get(key) or "" for key in ("operator", "value", "effect"))
    if key := toleration.get("key"):
        found.declared += complaints(is_qualified_name, key, f"{path}.key")
    if operator == "Exists" and value:
        found.written.append(field.invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        found.written += complaints(is_valid_label_value, value, f"{path}.value")
    elif not operator:
        found.written.append(field.required(f"{path}.operator"))
    elif operator not in _OPERATORS:
        found.declared.append(field.not_supported(f"{path}.operator", operator, _OPERATORS))
    if effect and effect not in EFFECTS:
        found.declared.append(field.not_supported(f"{path}.effect", effect, EFFECTS))


def _references(listed: list[str], names: set[str], path: str, found: Complaints) -> None:
    found.once(listed, path)
    for i, name in enumerate(listed):
        _reference(name, names, f"{path}[{i}]", found)


def _reference(name: str, names: set[str], path: str, found: Complaints) -> None:
    parts = name.split("/")
    if len(parts) <= 2:
        for part in parts:
            found.written += dns_label(part, path)
    if name not in names:
        found.written.append(field.invalid(path, name, _REFERENCE))


def _constraint(constraint: Object, names: set[str], path: str, found: Complaints) -> None:
    _references(constraint.get("requests") or [], names, f"{path}.requests", found)
    match, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    if match is not None:
        found.declared += _attribute(match, f"{path}.matchAttribute")
    elif distinct is not None:
        found.written += _attribute(distinct, f"{path}.distinctAttribute")
    else:
        found.written.append(field.required(path, _ONE_ATTRIBUTE))


def _attribute(name: str, path: str) -> list[FieldError]:
    errors = qualified(name, path)
    return errors if "/" in name else [*errors, field.invalid(path, name, _NO_DOMAIN)]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    found = Complaints()
    allocation, reserved = status.get("allocation"), status.get("reservedFor") or []
    for i, user in enumerate(reserved):
        at = f"status.reservedFor[{i}]"
        found.written += [field.required(f"{at}.{key}") for key in ("resource", "name", "uid") if not user.get(key)]
    if reserved and allocation is None:
        found.written.append(field.forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif reserved and new["metadata"].get("deletionTimestamp") and any(u not in (before.get("reservedFor") or []) for u in reserved):
        text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        found.written.append(field.forbidden("status.reservedFor", text))
    if allocation is not None and before.get("allocation") is not None:
        if not same(allocation, before["allocation"]):
            found.declared.append(field.invalid("status.allocation", None, "field cannot be modified once set"))
    elif allocation is not None:
        _allocation(allocation, _request_names(((new.get("spec") or {}).get("devices") or {}).get("requests") or []), found)
    users = [{key: u[key] for key in ("apiGroup", "resource", "name", "uid") if u.get(key)} for u in reserved]
    found.once([u.get("uid") or "" for u in reserved], "status.reservedFor", users)
    for i, device in enumerate(status.get("devices") or ()):
        _device_status(device, allocation, f"status.devices[{i}]", found)
    return found.all()


def _allocation(allocation: Object, names: set[str], found: Complaints) -> None:
    devices, path = allocation.get("devices") or {}, "status.allocation.devices"
    for i, result in enumerate(devices.get("results") or ()):
        at = f"{path}.results[{i}]"
        _reference(result.get("request") or "", names, f"{at}.request", found)
        declared_driver(result.get("driver") or "", f"{at}.driver", found)
        found.declared += pool_name(result.get("pool") or "", f"{at}.pool")
        found.written += dns_label(result.get("device") or "", f"{at}.device") + binding(result, at)
    for i, config in enumerate(devices.get("config") or ()):
        at, source = f"{path}.config[{i}]", config.get("source") or ""
        if not source:
            found.declared.append(field.required(f"{at}.source"))
        elif source not in ("FromClaim", "FromClass"):
            found.declared.append(field.not_supported(f"{at}.source", source, ["FromClaim", "FromClass"]))
        _references(config.get("requests") or [], names, f"{at}.requests", found)
        configuration(config, at, found)
    if (selector := allocation.get("nodeSelector")) is not None:
        found.written += node_selector(selector, "status.allocation.nodeSelector")


def _device_status(device: Object, allocation: Object | None, path: str, found: Complaints) -> None:
    key = tuple(device.get(name) or "" for name in ("driver", "pool", "device"))
    found.written += csi_driver_name(key[0], f"{path}.driver") + pool_name(key[1], f"{path}.pool") + dns_label(key[2], f"{path}.device")
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    if key not in {tuple(r.get(name) or "" for name in ("driver", "pool", "device")) for r in results}:
        found.written.append(field.invalid(path, "/".join(key), "must be an allocated device in the claim"))
    found.written += conditions(device.get("conditions") or [], f"{path}.conditions")
    if (data := device.get("data")) is not None and not isinstance(data, dict):
        found.written.append(field.invalid(f"{path}.data", "<value omitted>", "must be a valid JSON object"))


def any_name(name: str, prefix: bool) -> list[str]:
    """The schema declares what a DeviceClass may be called, so it is told last."""
    return []


def validate_class(obj: Object) -> list[FieldError]:
    spec, found, name = obj.get("spec") or {}, Complaints(), obj["metadata"].get("name") or ""
    found.declared += complaints(is_dns1123_subdomain, name, "metadata.name")
    found.written += selectors(spec.get("selectors") or [], "spec.selectors")
    for i, config in enumerate(spec.get("config") or ()):
        configuration(config, f"spec.config[{i}]", found)
    if (extended := spec.get("extendedResourceName")) is not None:
        found.declared += _extended_name(extended, "spec.extendedResourceName")
    return found.all()


def _extended_name(name: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if "/" not in name:
        errors.append(field.invalid(path, name, "a name must be a domain-prefixed path, such as 'example.com/my-prop'"))
    elif "kubernetes.io/" in name:
        errors.append(field.invalid(path, name, 'must not have "kubernetes.io/" domain'))
    if name.startswith("requests."):
        errors.append(field.invalid(path, name, 'must not have "requests." prefix'))
    return errors + [field.invalid(path, name, text) for text in is_qualified_name(f"requests.{name}")]


def validate_taint_rule(obj: Object) -> list[FieldError]:
    spec, found = obj.get("spec") or {}, Complaints()
    selector = spec.get("deviceSelector") or {}
    for key, check in (("driver", csi_driver_name), ("pool", pool_name), ("device", dns_label)):
        if (value := selector.get(key)) is not None:
            found.written += check(value, f"spec.deviceSelector.{key}")
    taint(spec.get("taint") or {}, "spec.taint", found)
    return found.all()


def validate_taint_rule_status(new: Object, old: Object) -> list[FieldError]:
    return conditions((new.get("status") or {}).get("conditions") or [], "status.conditions")
