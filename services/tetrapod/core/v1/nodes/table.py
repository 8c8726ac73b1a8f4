"""Columns of Node. Upstream: pkg/printers/internalversion/printers.go, printNode."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, name_of, spec_of, status_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def _node_row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    info = status.get("nodeInfo") or {}
    addresses = {a.get("type"): a.get("address") for a in reversed(status.get("addresses") or [])}
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or []}
    states = ["Ready" if conditions["Ready"] == "True" else "NotReady"] if "Ready" in conditions else ["Unknown"]
    if spec.get("unschedulable"):
        states.append("SchedulingDisabled")
    return [
        name_of(obj),
        ",".join(states),
        ",".join(_roles(obj)) or NONE,
        age(obj),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or "<unknown>",
        _kernel(info),
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _kernel(info: Object) -> str:
    """Return the kernel version, or "<unknown>", followed by the architecture in parentheses if it is set."""
    kernel, architecture = info.get("kernelVersion") or "<unknown>", info.get("architecture") or ""
    return f"{kernel} ({architecture})" if architecture else kernel


def _roles(node: Object) -> list[str]:
    """Return the node's roles, sorted, from its labels node-role.kubernetes.io/ROLE and kubernetes.io/role=ROLE."""
    labels = node["metadata"].get("labels") or {}
    roles = set()
    for label, value in labels.items():
        if label.startswith("node-role.kubernetes.io/"):
            roles.add(label.removeprefix("node-role.kubernetes.io/"))
        elif label == "kubernetes.io/role" and value:
            roles.add(value)
    return sorted(roles - {""})


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Status"),
        Column("Roles"),
        AGE,
        Column("Version"),
        Column("Internal-IP", priority=1),
        Column("External-IP", priority=1),
        Column("OS-Image", priority=1),
        Column("Kernel-Version", priority=1),
        Column("Container-Runtime", priority=1),
    ),
    _node_row,
)
