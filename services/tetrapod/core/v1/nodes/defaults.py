"""Defaults of Node. Upstream: pkg/apis/core/v1/{defaults,conversion}.go."""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.pod_resources import round_up
from tetrapod.machinery.gvk import Object

_NODE_INFO: Final = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)
"""The fields of status.nodeInfo, which are always present because they have no omitempty upstream."""


def set_defaults(obj: Object) -> None:
    """Set the defaults of a Node in place.

    podCIDR and podCIDRs are made consistent, quantities are rounded up to a thousandth, and allocatable defaults to
    capacity. Fields of status.nodeInfo and the kubelet's port get zero values.
    """
    _alias_networks(obj.setdefault("spec", {}))
    status = obj.setdefault("status", {})
    kubelet = status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {})
    kubelet.setdefault("Port", 0)
    info = status.setdefault("nodeInfo", {})
    for field in _NODE_INFO:
        info.setdefault(field, "")
    for field in ("capacity", "allocatable"):
        if quantities := status.get(field):
            round_up(quantities)
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _alias_networks(spec: Object) -> None:
    """Set podCIDR to the first of podCIDRs, or podCIDRs to [podCIDR] if podCIDR differs from its first entry."""
    first, cidrs = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and (not cidrs or cidrs[0] != first):
        spec["podCIDRs"] = [first]
    elif cidrs:
        spec["podCIDR"] = cidrs[0]
