"""Warnings about Services. Upstream: pkg/api/service/warnings.go."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.addresses import cidr_warnings, ip_warnings
from tetrapod.machinery.gvk import Object

_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"


def service_warnings(obj: Object) -> list[str]:
    """Return warnings about deprecated or ignored fields of a Service, and about addresses in non-canonical form."""
    spec = obj.get("spec") or {}
    service_type, external_ips, ip = spec.get("type"), spec.get("externalIPs") or [], spec.get("clusterIP") or ""
    headless = service_type == "ClusterIP" and ip == "None"
    out: list[str] = []
    if _HINTS in (obj["metadata"].get("annotations") or {}):
        out.append(f"annotation {_HINTS} is deprecated, please use {_MODE} instead")
    if ip not in ("", "None"):
        for i, value in enumerate(spec.get("clusterIPs") or ()):
            out += ip_warnings(f"spec.clusterIPs[{i}]", value)
    if headless:
        out += _headless(spec)
    for i, value in enumerate(external_ips):
        out += ip_warnings(f"spec.externalIPs[{i}]", value)
    if external_ips and not headless and service_type != "ExternalName":
        out.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if balancer_ip := spec.get("loadBalancerIP"):
        out += ip_warnings("spec.loadBalancerIP", balancer_ip)
    for i, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        out += cidr_warnings(f"spec.loadBalancerSourceRanges[{i}]", cidr)
    if service_type == "ExternalName" and external_ips:
        out.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if service_type != "ExternalName" and spec.get("externalName"):
        out.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        out.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return out


def status_warnings(obj: Object) -> list[str]:
    """Return warnings about load balancer addresses in non-canonical form in a Service's status."""
    out: list[str] = []
    for i, ingress in enumerate(((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()):
        if ip := ingress.get("ip"):
            out += ip_warnings(f"status.loadBalancer.ingress[{i}]", ip)
    return out


def _headless(spec: Object) -> list[str]:
    out = []
    if spec.get("loadBalancerIP"):
        out.append("spec.loadBalancerIP is ignored for headless services")
    if spec.get("externalIPs"):
        out.append("spec.externalIPs is ignored for headless services")
    if spec.get("sessionAffinity") not in (None, "None"):
        out.append("spec.SessionAffinity is ignored for headless services")
    return out
