"""Columns of services, endpoints, ingresses and related kinds.

Upstream: pkg/printers/internalversion/printers.go, printService, printEndpoints, printIngress and others.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, UNSET, age, labels_text, more, name_of, selector_text, spec_of, status_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def _external_ips(service: Object) -> str:
    spec = spec_of(service)
    external = spec.get("externalIPs") or []
    kind = spec.get("type", "")
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind == "LoadBalancer":
        ingress = (status_of(service).get("loadBalancer") or {}).get("ingress") or []
        addresses = [i.get("ip") or i.get("hostname") for i in ingress if i.get("ip") or i.get("hostname")]
        load_balancer_ips = ",".join(sorted(set(addresses)))
        if external:
            return ",".join([load_balancer_ips, *external] if load_balancer_ips else external)
        return load_balancer_ips or "<pending>"
    return str(spec.get("externalName", "")) if kind == "ExternalName" else "<unknown>"


def _service_port(port: Object) -> str:
    text = str(port.get("port"))
    if port.get("nodePort"):
        text += f":{port['nodePort']}"
    return f"{text}/{port.get('protocol', '')}"


def _service_row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    ips = spec.get("clusterIPs") or []
    return [
        name_of(obj),
        spec.get("type", ""),
        (ips[0] if ips else spec.get("clusterIP")) or NONE,
        _external_ips(obj),
        ",".join(_service_port(p) for p in spec.get("ports") or []) or NONE,
        age(obj),
        labels_text(spec.get("selector")),
    ]


SERVICES: Final = TableConvertor(
    (
        NAME,
        Column("Type"),
        Column("Cluster-IP"),
        Column("External-IP"),
        Column("Port(s)"),
        AGE,
        Column("Selector", priority=1),
    ),
    _service_row,
)

_MAX_ENDPOINTS: Final = 3


def _endpoints_row(obj: Object) -> list[Any]:
    endpoints: list[str] = []
    for subset in obj.get("subsets") or []:
        addresses = [a.get("ip", "") for a in subset.get("addresses") or []]
        ports = subset.get("ports") or []
        if not ports:
            endpoints.extend(addresses)
        for port in ports:
            endpoints.extend(f"[{a}]:{port.get('port')}" if ":" in a else f"{a}:{port.get('port')}" for a in addresses)
    return [name_of(obj), more(endpoints, _MAX_ENDPOINTS) or NONE, age(obj)]


ENDPOINTS: Final = TableConvertor((NAME, Column("Endpoints"), AGE), _endpoints_row)


def _endpoint_slice_row(obj: Object) -> list[Any]:
    ports = obj.get("ports")
    if ports is None:
        port_text = UNSET if not obj.get("ports") else ""
    else:
        port_text = more((str(p["port"]) if p.get("port") is not None else p.get("name", "*") for p in ports), _MAX_ENDPOINTS)
    addresses = [a for e in obj.get("endpoints") or [] for a in e.get("addresses") or []]
    return [
        name_of(obj),
        obj.get("addressType", ""),
        port_text or UNSET,
        more(addresses, _MAX_ENDPOINTS) or UNSET,
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
