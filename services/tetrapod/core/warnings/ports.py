"""Container ports that say the same twice, or nearly (upstream: the ports of pkg/api/pod/warnings.go)."""

from __future__ import annotations

from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object

_Placed = tuple[str, Object]


def port_warnings(containers: list[tuple[Object, str]]) -> list[str]:
    placed = [(f"{path}.ports[{i}]", port) for container, path in containers for i, port in enumerate(container.get("ports") or ())]
    if not placed:
        return []
    return _definitions(placed) + _names(containers)


def _definitions(placed: list[_Placed]) -> list[str]:
    out: list[str] = []
    seen: dict[tuple[int, str], list[_Placed]] = {}
    for at, port in placed:
        if port.get("hostIP") and not port.get("hostPort"):
            out.append(f"{at}: hostIP set without hostPort: {_go_struct(port)}")
        others = seen.setdefault((port.get("containerPort") or 0, port.get("protocol") or ""), [])
        for where, other in others:
            if text := _clash(port, other):
                out.append(f"{at}: {text} port definition with {where}")
        others.append((at, port))
    return out


def _clash(port: Object, other: Object) -> str:
    ip, number = port.get("hostIP") or "", port.get("hostPort") or 0
    other_ip, other_number = other.get("hostIP") or "", other.get("hostPort") or 0
    if (ip, number) == (other_ip, other_number):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    return "dangerously ambiguous" if number == other_number and bool(ip) is not bool(other_ip) else ""


def _names(containers: list[tuple[Object, str]]) -> list[str]:
    out: list[str] = []
    first: dict[str, str] = {}
    for container, path in containers:
        for i, port in enumerate(container.get("ports") or ()):
            at, name = f"{path}.ports[{i}]", port.get("name") or ""
            if name in first:
                where = first[name]
                by_name = "services and probes that select ports by name will use"
                out.append(f"{at}: duplicate port name {go_quote(name)} with {where}, {by_name} {where}")
            elif name:
                first[name] = at
    return out


def _go_struct(port: Object) -> str:
    """As Go prints a struct with %+v."""
    parts = (
        f"Name:{port.get('name') or ''}",
        f"HostPort:{port.get('hostPort') or 0}",
        f"ContainerPort:{port.get('containerPort') or 0}",
        f"Protocol:{port.get('protocol') or ''}",
        f"HostIP:{port.get('hostIP') or ''}",
    )
    return "{" + " ".join(parts) + "}"
