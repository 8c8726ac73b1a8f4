"""Columns of Service. Upstream: pkg/printers/internalversion/printers.go, printService."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, SELECTOR, age, labels_text, name_of, spec_of, status_of
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
    if (port.get("nodePort") or 0) > 0:
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


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Type"),
        Column("Cluster-IP"),
        Column("External-IP"),
        Column("Port(s)"),
        AGE,
        SELECTOR,
    ),
    _service_row,
)
