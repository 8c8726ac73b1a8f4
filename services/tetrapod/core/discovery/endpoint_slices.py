"""The definition of EndpointSlices, with their strategy, defaults, validation, warnings and table columns.

Upstream: pkg/registry/discovery/endpointslice/strategy.go and pkg/apis/discovery/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, MAX_ENDPOINTS, NAME, UNSET, age, more, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import (
    IMMUTABLE,
    address,
    dns_label,
    dns_subdomain,
    errors_from,
    not_special_address,
)
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten, Text, new_value
from tetrapod.machinery import field
from tetrapod.machinery.addresses import ip_warnings, is_ipv4, is_ipv6, is_valid_ip
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import (
    is_dns1123_subdomain,
    is_fully_qualified_domain_name,
    is_qualified_name,
    is_valid_label_value,
)
from tetrapod.machinery.table import Column, TableConvertor

_HOST_NAME = "kubernetes.io/hostname"


_TYPES: Final = frozenset({"IPv4", "IPv6", "FQDN"})
_PROTOCOLS: Final = frozenset({"TCP", "UDP", "SCTP"})
_MOST_ENDPOINTS: Final = 1000
_MOST_ADDRESSES: Final = 100
_MOST_PORTS: Final = 20000
_MOST_HINTS: Final = 8

_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_OUR_CONTROLLERS: Final = frozenset({"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})
"""The managers of EndpointSlices whose addresses are always canonical, so that they are not checked."""


class EndpointSliceStrategy(KindStrategy):
    """The strategy of EndpointSlices.

    A change of labels increments the generation too. The field deprecatedTopology is dropped.
    """

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        _drop_topology(obj, frozenset())

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        old_endpoints = old.get("endpoints") or ()
        if not same(new.get("endpoints"), old_endpoints or None):
            new["metadata"]["generation"] = (
                old["metadata"].get("generation") or 0
            ) + 1  # even if the changed fields are dropped
            _drop_topology(
                new, frozenset((e.get("deprecatedTopology") or {}).get(_HOST_NAME, "") for e in old_endpoints)
            )

    def changes_generation(self, new: Object, old: Object) -> bool:
        return super().changes_generation(new, old) or new["metadata"].get("labels") != old["metadata"].get("labels")


def _drop_topology(obj: Object, known_nodes: frozenset[str]) -> None:
    """Remove deprecatedTopology from all endpoints. Upstream: dropTopologyOnV1.

    A valid hostname in it becomes nodeName if nodeName is unset and `known_nodes` contains it.

    Args:
        known_nodes: the hostnames in deprecatedTopology of the stored slice; empty on create.
    """
    for endpoint in obj.get("endpoints") or ():
        node = (endpoint.pop("deprecatedTopology", None) or {}).get(_HOST_NAME, "")
        if endpoint.get("nodeName") is None and node in known_nodes and not is_dns1123_subdomain(node):
            endpoint["nodeName"] = node


_FORM: Final = HandWritten(
    "addressType",
    "ports",
    "endpoints[].addresses",
    "addressType#",
    texts={
        "FieldValueRequired endpoints[].addresses": Text("must contain at least 1 address", former=""),
        "FieldValueInvalid addressType": Text(former=IMMUTABLE, value=new_value),
    },
)


def definition() -> ResourceDefinition:
    """Return the resource definition of EndpointSlices: versions, strategy, subresources and columns."""
    strategy = EndpointSliceStrategy(
        hand_written=_FORM,
        defaults=set_defaults,
        validator=validate,
        whole_update_validator=validate,
        revalidates_generate_name="before finalizers",
        warnings=warnings,
        generation=("addressType", "endpoints", "ports"),
    )
    return builtin("discovery.k8s.io", "endpointslices", strategy, table=TABLE)


def set_defaults(obj: Object) -> None:
    """Set the defaults of the ports of an EndpointSlice, which is modified: the name "" and the protocol TCP."""
    for port in obj.get("ports") or ():
        if port.get("name") is None:
            port["name"] = ""
        if port.get("protocol") is None:
            port["protocol"] = "TCP"


def validate(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Validate a new or updated EndpointSlice: addressType, ports and endpoints.

    Each endpoint has 1 to 100 addresses of this type, and valid names and hints. Upstream writes some rules by hand and
    declares others in the types. Errors of the declared rules come last.

    Args:
        old: the stored object, or None on create. If no endpoint changed, the endpoints are not validated again; if one
            changed, all of them are.
    """
    errors, late = _address_type(obj.get("addressType") or "", old)
    errors += _ports(obj.get("ports") or [])
    endpoints = obj.get("endpoints") or []
    if old is not None and same(endpoints, old.get("endpoints") or []):
        return errors + late
    if len(endpoints) > _MOST_ENDPOINTS:
        return [*errors, field.too_many("endpoints", len(endpoints), _MOST_ENDPOINTS), *late]
    for i, endpoint in enumerate(endpoints):
        path, listed = f"endpoints[{i}]", endpoint.get("addresses") or []
        errors += _endpoint(endpoint, obj.get("addressType") or "", path)
        if not listed:
            late.append(field.required(f"{path}.addresses"))
        elif len(listed) > _MOST_ADDRESSES:
            late.append(field.too_many(f"{path}.addresses", len(listed), _MOST_ADDRESSES))
    return errors + late


def _address_type(kind: str, old: Object | None) -> tuple[list[FieldError], list[FieldError]]:
    """Validate addressType.

    The declared rules report a changed type as immutable and then do not check that it is supported, so the
    hand-written rule does.

    Args:
        kind: addressType of the new slice; "" if it is not set.
        old: the stored object, or None on create.

    Returns:
        The errors of upstream's hand-written rules, and those of its declared rules.
    """
    moved = old is not None and kind != (old.get("addressType") or "")
    late = [] if kind else [field.required("addressType")]
    if moved:
        late.append(field.invalid("addressType", None, IMMUTABLE))
    if not kind or kind in _TYPES:
        return [], late
    unknown = field.not_supported("addressType", kind, _TYPES)
    return ([unknown], late) if moved else ([], [*late, unknown])


def _endpoint(endpoint: Object, kind: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, value in enumerate(endpoint.get("addresses") or ()):
        errors += _address(value, kind, f"{path}.addresses", i)
    if (name := endpoint.get("nodeName")) is not None:
        errors += dns_subdomain(name, f"{path}.nodeName")
    if (host := endpoint.get("hostname")) is not None:
        errors += dns_label(host, f"{path}.hostname")
    hints = endpoint.get("hints") or {}
    for hint_kind, check in (("forZones", is_valid_label_value), ("forNodes", None)):
        listed = hints.get(hint_kind) or []
        if len(listed) > _MOST_HINTS:
            return [*errors, field.too_many(f"{path}.hints.{hint_kind}", len(listed), _MOST_HINTS)]
        seen: set[str] = set()
        for i, hint in enumerate(listed):
            at, name = f"{path}.hints.{hint_kind}[{i}].name", hint.get("name") or ""
            if name in seen:
                errors.append(field.duplicate(at, name))
            seen.add(name)
            errors += errors_from(check, name, at) if check else dns_subdomain(name, at)
    return errors


def _address(value: str, kind: str, path: str, i: int) -> list[FieldError]:
    at = f"{path}[{i}]"
    if kind == "FQDN":
        if not value:
            return [field.required(at)]
        return errors_from(is_fully_qualified_domain_name, value.removesuffix("."), at)
    if kind not in ("IPv4", "IPv6"):
        return []
    if invalid := address(value, at) if kind == "IPv4" else errors_from(is_valid_ip, value, at):
        return invalid
    right = is_ipv4(value) if kind == "IPv4" else is_ipv6(value)
    errors = [] if right else [field.invalid(path, value, f"must be an {kind} address")]
    return errors + not_special_address(value, at)


def _ports(ports: list[Object]) -> list[FieldError]:
    if len(ports) > _MOST_PORTS:
        return [field.too_many("ports", len(ports), _MOST_PORTS)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, port in enumerate(ports):
        name, protocol, path = port.get("name") or "", port.get("protocol"), f"ports[{i}]"
        if name:
            errors += dns_label(name, f"{path}.name")
        if name in seen:
            errors.append(field.duplicate(f"{path}.name", name))
        seen.add(name)
        if protocol is None:
            errors.append(field.required(f"{path}.protocol"))
        elif protocol not in _PROTOCOLS:
            errors.append(field.not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
        if (app := port.get("appProtocol")) is not None:
            errors += errors_from(is_qualified_name, app, f"{path}.appProtocol")
    return errors


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return warnings about a new slice of type FQDN and about addresses that are not in canonical form.

    Args:
        old: the stored object, or None on create.
    """
    warnings = (
        ["spec.addressType: FQDN endpoints are deprecated"] if old is None and obj.get("addressType") == "FQDN" else []
    )
    if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) in _OUR_CONTROLLERS:
        return warnings
    for i, endpoint in enumerate(obj.get("endpoints") or ()):
        for j, text in enumerate(endpoint.get("addresses") or ()):
            warnings += ip_warnings(f"endpoints[{i}].addresses[{j}]", text)
    return warnings


def _row(obj: Object) -> list[Any]:
    ports = [str(p["port"]) if p.get("port") is not None else p.get("name", "*") for p in obj.get("ports") or ()]
    addresses = [a for e in obj.get("endpoints") or [] for a in e.get("addresses") or []]
    return [
        name_of(obj),
        obj.get("addressType", ""),
        more(ports, MAX_ENDPOINTS) or UNSET,
        more(addresses, MAX_ENDPOINTS) or UNSET,
        age(obj),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("AddressType"),
        Column("Ports"),
        Column("Endpoints"),
        AGE,
    ),
    _row,
)
