"""Warnings about kinds of the smaller groups; see `workloads` for the form of the functions."""

from __future__ import annotations

from typing import Final

from tetrapod.core.warnings.labels import deprecated_label
from tetrapod.machinery.addresses import cidr_warnings, ip_warnings
from tetrapod.machinery.gvk import Object

_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_OUR_CONTROLLERS: Final = frozenset({"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})
"""They write no address that is to be warned of."""


def endpoint_slice(obj: Object, old: Object | None) -> list[str]:
    found = ["spec.addressType: FQDN endpoints are deprecated"] if old is None and obj.get("addressType") == "FQDN" else []
    if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) in _OUR_CONTROLLERS:
        return found
    for i, endpoint in enumerate(obj.get("endpoints") or ()):
        for j, address in enumerate(endpoint.get("addresses") or ()):
            found += ip_warnings(f"endpoints[{i}].addresses[{j}]", address)
    return found


def ingress(obj: Object, old: Object | None) -> list[str]:
    if old is not None or _INGRESS_CLASS not in (obj["metadata"].get("annotations") or {}):
        return []
    return [f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def network_policy(obj: Object, old: Object | None) -> list[str]:
    found: list[str] = []
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate((obj.get("spec") or {}).get(direction) or ()):
            for j, peer in enumerate(rule.get(peers) or ()):
                block, path = peer.get("ipBlock") or {}, f"spec.{direction}[{i}].{peers}[{j}].ipBlock"
                found += cidr_warnings(f"{path}.cidr", block.get("cidr") or "")
                found += [text for k, cidr in enumerate(block.get("except") or ()) for text in cidr_warnings(f"{path}.except[{k}]", cidr)]
    return found


def runtime_class(obj: Object, old: Object | None) -> list[str]:
    selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
    return [f"scheduling.nodeSelector: {text}" for text in map(deprecated_label, selector) if text]


def storage_class(obj: Object, old: Object | None) -> list[str]:
    found = []
    for i, term in enumerate(obj.get("allowedTopologies") or ()):
        for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
            if text := deprecated_label(expression.get("key") or ""):
                found.append(f"allowedTopologies[{i}].matchLabelExpressions[{j}].key: {text}")
    return found


def storage_capacity(obj: Object, old: Object | None) -> list[str]:
    topology = obj.get("nodeTopology") or {}
    found = [f"nodeTopology.matchLabels.{key}: {text}" for key in topology.get("matchLabels") or () if (text := deprecated_label(key))]
    for i, expression in enumerate(topology.get("matchExpressions") or ()):
        if text := deprecated_label(expression.get("key") or ""):
            found.append(f"nodeTopology.matchExpressions[{i}].key: {text}")
    return found
