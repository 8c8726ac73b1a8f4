"""The definition of Endpoints, with their defaults, validation, warnings and table columns.

Upstream: pkg/apis/core/validation/validation.go, ValidateEndpoints; pkg/registry/core/endpoint/strategy.go;
pkg/printers/internalversion/printers.go, printEndpoints.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, MAX_ENDPOINTS, NAME, NONE, age, more, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec.containers import PROTOCOLS
from tetrapod.core.validation.names import (
    address,
    dns_label,
    dns_subdomain,
    not_special_address,
    one_of,
    port_number,
    qualified_name,
)
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.addresses import ip_warnings
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.ip_addresses import join_host_port
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"


def definition() -> ResourceDefinition:
    """Return the resource definition of endpoints: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=set_defaults,
        allow_create_on_update=True,
        validator=validate,
        whole_update_validator=validate_update,
        revalidates_generate_name="after finalizers",
        warnings=warnings,
    )
    return builtin(
        "",
        "endpoints",
        strategy,
        storage_prefix="services/endpoints",
        table=TABLE,
    )


def set_defaults(obj: Object) -> None:
    """Set the protocol of ports without one to TCP, in place."""
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"


def validate(obj: Object) -> list[FieldError]:
    """Validate the subsets of a new Endpoints object.

    Each has addresses, ready or not, which are neither loopback nor link-local. Names and ports are valid, and several
    ports are named.
    """
    return _subsets(obj, [])


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated Endpoints object by the rules for a new one.

    Addresses that the stored object contains may keep a legacy format.
    """
    return _subsets(new, _addresses(old))


def warnings(new: Object, old: Object | None) -> list[str]:
    """Return warnings about addresses in a discouraged notation.

    Objects of the Endpoints controller have none, because it writes addresses in their canonical form.

    Args:
        old: not used.
    """
    if (new["metadata"].get("labels") or {}).get(_MANAGED_BY) == "endpoint-controller":
        return []
    return [
        warning
        for i, subset in enumerate(new.get("subsets") or ())
        for key in ("addresses", "notReadyAddresses")
        for j, endpoint in enumerate(subset.get(key) or ())
        for warning in ip_warnings(f"subsets[{i}].{key}[{j}].ip", endpoint.get("ip") or "")
    ]


def _addresses(obj: Object) -> list[str]:
    return [
        a.get("ip") or ""
        for s in obj.get("subsets") or ()
        for key in ("addresses", "notReadyAddresses")
        for a in s.get(key) or ()
    ]


def _subsets(obj: Object, stored_values: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, subset in enumerate(obj.get("subsets") or ()):
        path, ports = f"subsets[{i}]", subset.get("ports") or []
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(field.required(path, "must specify `addresses` or `notReadyAddresses`"))
        for kind in ("addresses", "notReadyAddresses"):
            for j, endpoint in enumerate(subset.get(kind) or ()):
                errors += _address(endpoint, f"{path}.{kind}[{j}]", stored_values)
        for j, port in enumerate(ports):
            errors += _port(port, len(ports) > 1, f"{path}.ports[{j}]")
    return errors


def _address(endpoint: Object, path: str, stored_values: list[str]) -> list[FieldError]:
    ip = endpoint.get("ip") or ""
    errors = address(ip, f"{path}.ip", stored_values)
    if host := endpoint.get("hostname"):
        errors += dns_label(host, f"{path}.hostname")
    if (node := endpoint.get("nodeName")) is not None:
        errors += dns_subdomain(node, f"{path}.nodeName")
    return errors + not_special_address(ip, f"{path}.ip")


def _port(port: Object, named: bool, path: str) -> list[FieldError]:
    name = port.get("name") or ""
    errors = dns_label(name, f"{path}.name") if name else [field.required(f"{path}.name")] if named else []
    errors += port_number(port.get("port") or 0, f"{path}.port")
    errors += one_of(port.get("protocol"), PROTOCOLS, f"{path}.protocol")
    if (protocol := port.get("appProtocol")) is not None:
        errors += qualified_name(protocol, f"{path}.appProtocol")
    return errors


def _endpoints_row(obj: Object) -> list[Any]:
    endpoints: list[str] = []
    for subset in obj.get("subsets") or []:
        addresses = [a.get("ip", "") for a in subset.get("addresses") or []]
        ports = subset.get("ports") or []
        if not ports:
            endpoints.extend(addresses)
        for port in ports:
            endpoints.extend(join_host_port(address, port.get("port")) for address in addresses)
    shown = more(endpoints, MAX_ENDPOINTS) if obj.get("subsets") else NONE
    return [name_of(obj), shown, age(obj)]


TABLE: Final = TableConvertor((NAME, Column("Endpoints"), AGE), _endpoints_row)
