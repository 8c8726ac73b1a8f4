"""Warnings about kinds of the smaller groups; see `workloads` for the form of the functions."""

from __future__ import annotations

from typing import Final

from tetrapod.core.warnings.labels import deprecated_label
from tetrapod.core.warnings.volumes import fractional
from tetrapod.machinery.gvk import Object

_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"


def endpoint_slice(obj: Object, old: Object | None) -> list[str]:
    return ["spec.addressType: FQDN endpoints are deprecated"] if obj.get("addressType") == "FQDN" else []


def ingress(obj: Object, old: Object | None) -> list[str]:
    if old is not None or _INGRESS_CLASS not in (obj["metadata"].get("annotations") or {}):
        return []
    return [f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def runtime_class(obj: Object, old: Object | None) -> list[str]:
    selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
    found = [f"scheduling.nodeSelector: {text}" for text in map(deprecated_label, selector) if text]
    for name, value in ((obj.get("overhead") or {}).get("podFixed") or {}).items():
        found += fractional(value, f"overhead.podFixed[{name}]") if name in ("memory", "storage", "ephemeral-storage") else []
    return found


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
