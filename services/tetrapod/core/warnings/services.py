"""Service (upstream: pkg/api/service/warnings.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.addresses import cidr_warnings, ip_warnings
from tetrapod.machinery.gvk import Object

_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"


def service_warnings(obj: Object, old: Object | None) -> list[str]:
    spec, kind = obj.get("spec") or {}, (obj.get("spec") or {}).get("type")
    out: list[str] = []
    if _HINTS in (obj["metadata"].get("annotations") or {}):
        out.append(f"annotation {_HINTS} is deprecated, please use {_MODE} instead")
    ips, external = spec.get("clusterIPs") or [], spec.get("externalIPs") or []
    if external and external != (((old or {}).get("spec") or {}).get("externalIPs") or []):
        out.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if ips == ["None"]:
        out += _headless(spec)
    else:
        for i, ip in enumerate(ips):
            out += ip_warnings(f"spec.clusterIPs[{i}]", ip)
    for i, ip in enumerate(external):
        out += ip_warnings(f"spec.externalIPs[{i}]", ip)
    if balancer := spec.get("loadBalancerIP"):
        out += ip_warnings("spec.loadBalancerIP", balancer)
    for i, cidr in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        out += cidr_warnings(f"spec.loadBalancerSourceRanges[{i}]", cidr)
    if kind == "ExternalName" and external:
        out.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        out.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        out.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
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
