"""Warnings about nodes, secrets, service accounts and quotas.

Upstream: pkg/api/{node,secret,serviceaccount}, pkg/registry/core/resourcequota.
"""

from __future__ import annotations

from tetrapod.machinery.addresses import cidr_warnings
from tetrapod.machinery.gvk import Object


def node_warnings(node: Object, old: Object | None) -> list[str]:
    """Return warnings about deprecated fields and non-canonical CIDRs."""
    spec = node.get("spec") or {}
    out = ["spec.externalID: this field is deprecated, and is unused by Kubernetes"] if spec.get("externalID") else []
    for i, cidr in enumerate(spec.get("podCIDRs") or ()):
        out += cidr_warnings(f"spec.podCIDRs[{i}]", cidr)
    return out
