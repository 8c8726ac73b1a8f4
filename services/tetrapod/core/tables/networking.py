"""Columns of services, endpoints, ingresses and related kinds.

Upstream: pkg/printers/internalversion/printers.go, printService, printEndpoints, printIngress and others.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, MAX_ENDPOINTS, NAME, NONE, UNSET, age, more, name_of, selector_text, spec_of, status_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def _endpoint_slice_row(obj: Object) -> list[Any]:
    ports = obj.get("ports")
    if ports is None:
        port_text = UNSET if not obj.get("ports") else ""
    else:
        port_text = more((str(p["port"]) if p.get("port") is not None else p.get("name", "*") for p in ports), MAX_ENDPOINTS)
    addresses = [a for e in obj.get("endpoints") or [] for a in e.get("addresses") or []]
    return [
        name_of(obj),
        obj.get("addressType", ""),
        port_text or UNSET,
        more(addresses, MAX_ENDPOINTS) or UNSET,
        age(obj),
    ]


ENDPOINT_SLICES: Final = TableConvertor(
    (
        NAME,
        Column("AddressType"),
        Column("Ports"),
        Column("Endpoints"),
        AGE,
    ),
    _endpoint_slice_row,
)


def _ingress_row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    hosts = [r["host"] for r in spec.get("rules") or [] if r.get("host")]
    addresses = [i.get("ip") or i.get("hostname") or "" for i in (status_of(obj).get("loadBalancer") or {}).get("ingress") or []]
    return [
        name_of(obj),
        NONE if (name := spec.get("ingressClassName")) is None else name,
        more(hosts, 3) or "*",
        ",".join(sorted({a for a in addresses if a})),
        "80, 443" if spec.get("tls") else "80",
        age(obj),
    ]


INGRESSES: Final = TableConvertor(
    (
        NAME,
        Column("Class"),
        Column("Hosts"),
        Column("Address"),
        Column("Ports"),
        AGE,
    ),
    _ingress_row,
)


_DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"


def _ingress_class_row(obj: Object) -> list[Any]:
    parameters = spec_of(obj).get("parameters")
    text = NONE
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        text = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    return [f"{name_of(obj)} (default)" if default else name_of(obj), spec_of(obj).get("controller", ""), text, age(obj)]


INGRESS_CLASSES: Final = TableConvertor(
    (
        NAME,
        Column("Controller"),
        Column("Parameters"),
        AGE,
    ),
    _ingress_class_row,
)
NETWORK_POLICIES: Final = TableConvertor(
    (NAME, Column("Pod-Selector"), AGE),
    lambda obj: [name_of(obj), selector_text(spec_of(obj).get("podSelector")), age(obj)],
)


def _ip_address_row(obj: Object) -> list[Any]:
    """Return three cells for two columns, as upstream does: the age has no column."""
    parent = spec_of(obj).get("parentRef")
    text = NONE
    if parent is not None:
        group = f".{parent['group']}" if parent.get("group") else ""
        parts = [f"{parent.get('resource', '')}{group}".lower()]
        parts += [parent["namespace"]] if parent.get("namespace") else []
        parts.append(parent.get("name", ""))
        text = "/".join(parts)
    return [name_of(obj), text, age(obj)]


IP_ADDRESSES: Final = TableConvertor((NAME, Column("ParentRef")), _ip_address_row)
SERVICE_CIDRS: Final = TableConvertor(
    (NAME, Column("CIDRs"), AGE),
    lambda obj: [name_of(obj), ",".join(spec_of(obj).get("cidrs") or []), age(obj)],
)
