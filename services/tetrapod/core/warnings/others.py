"""Warnings about kinds of smaller groups. `workloads` describes the functions' arguments."""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.label_warnings import deprecated_label
from tetrapod.machinery.addresses import cidr_warnings, ip_warnings
from tetrapod.machinery.gvk import Object

_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_OUR_CONTROLLERS: Final = frozenset({"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})
"""The managers of EndpointSlices whose addresses are always canonical, so that they are not checked."""


def endpoint_slice(obj: Object, old: Object | None) -> list[str]:
    """Return warnings about an EndpointSlice."""
    warnings = ["spec.addressType: FQDN endpoints are deprecated"] if old is None and obj.get("addressType") == "FQDN" else []
    if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) in _OUR_CONTROLLERS:
        return warnings
    for i, endpoint in enumerate(obj.get("endpoints") or ()):
        for j, address in enumerate(endpoint.get("addresses") or ()):
            warnings += ip_warnings(f"endpoints[{i}].addresses[{j}]", address)
    return warnings


def ingress(obj: Object, old: Object | None) -> list[str]:
    """Return a warning if a new Ingress has the deprecated class annotation."""
    if old is not None or _INGRESS_CLASS not in (obj["metadata"].get("annotations") or {}):
        return []
    return [f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def network_policy(obj: Object, old: Object | None) -> list[str]:
    """Return warnings about the CIDRs of a NetworkPolicy."""
    warnings: list[str] = []
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate((obj.get("spec") or {}).get(direction) or ()):
            for j, peer in enumerate(rule.get(peers) or ()):
                block, path = peer.get("ipBlock") or {}, f"spec.{direction}[{i}].{peers}[{j}].ipBlock"
                warnings += cidr_warnings(f"{path}.cidr", block.get("cidr") or "")
                warnings += [
                    text for k, cidr in enumerate(block.get("except") or ()) for text in cidr_warnings(f"{path}.except[{k}]", cidr)
                ]
    return warnings


def runtime_class(obj: Object, old: Object | None) -> list[str]:
    """Return warnings about deprecated labels in the node selector."""
    selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
    return [f"scheduling.nodeSelector: {text}" for text in map(deprecated_label, selector) if text]
