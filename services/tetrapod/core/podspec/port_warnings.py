"""Warnings about duplicate or overlapping container ports. Upstream: pkg/api/pod/warnings.go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tetrapod.generic.filters.warnings import ENOUGH
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

_Placed = tuple[str, Object]


class _OtherPorts:
    """An index of the container ports with the same containerPort and protocol, by host port and host IP.

    It finds the ports that conflict with another one without visiting all of them.
    """

    def __init__(self) -> None:
        self._all: list[tuple[int, _Placed]] = []
        self._by_number: dict[int, list[tuple[int, _Placed]]] = defaultdict(list)
        self._by_address: dict[tuple[int, str], list[tuple[int, _Placed]]] = defaultdict(list)

    def add(self, placed: _Placed) -> None:
        """Add a pair of a port's field path and the port."""
        entry, (number, ip) = (len(self._all), placed), _address(placed[1])
        self._all.append(entry)
        self._by_number[number].append(entry)
        self._by_address[number, ip].append(entry)

    def clashing(self, port: Object) -> Iterable[_Placed]:
        """Return the pairs of path and port whose host port and IP overlap with those of `port`, in insertion order.

        A host port of 0 overlaps with every host port, and an empty host IP with every IP.
        """
        number, ip = _address(port)
        if not number:
            entries = self._all
        else:
            same_number = self._by_address[number, ip] + self._by_address[number, ""] if ip else self._by_number[number]
            entries = sorted(self._by_number[0] + same_number, key=lambda entry: entry[0])
        return (placed for _, placed in entries)


def port_warnings(containers: list[tuple[Object, str]]) -> list[str]:
    """Return warnings about duplicate, overlapping or ambiguous ports and duplicate port names in a pod.

    Args:
        containers: all containers of the pod with their field paths.
    """
    ports = [
        (f"{path}.ports[{i}]", port)
        for container, path in containers
        for i, port in enumerate(container.get("ports") or ())
    ]
    if not ports:
        return []
    return _definitions(ports) + _names(containers)


def _definitions(placed: list[_Placed]) -> list[str]:
    out: list[str] = []
    seen: dict[tuple[int, str], _OtherPorts] = defaultdict(_OtherPorts)
    for port_path, port in placed:
        if port.get("hostIP") and not port.get("hostPort"):
            out.append(f"{port_path}: hostIP set without hostPort: {_go_struct(port)}")
        others = seen[port.get("containerPort") or 0, port.get("protocol") or ""]
        for other_path, other in others.clashing(port):
            out.append(f"{port_path}: {_clash(port, other)} port definition with {other_path}")
            if len(out) >= ENOUGH:
                return out
        others.add((port_path, port))
    return out


def _clash(port: Object, other: Object) -> str:
    """Return how two overlapping ports of a pod conflict.

    Returns:
        "duplicate" if their host ports and host IPs are equal; otherwise "dangerously ambiguous" if both have a host
            port,
        and "overlapping" if only one has.
    """
    if _address(port) == _address(other):
        return "duplicate"
    return "dangerously ambiguous" if port.get("hostPort") and other.get("hostPort") else "overlapping"


def _address(port: Object) -> tuple[int, str]:
    """Return the host port (0 if unset) and the host IP ("" if unset) of a port."""
    return port.get("hostPort") or 0, port.get("hostIP") or ""


def _names(containers: list[tuple[Object, str]]) -> list[str]:
    out: list[str] = []
    first: dict[str, str] = {}
    for container, path in containers:
        for i, port in enumerate(container.get("ports") or ()):
            port_path, name = f"{path}.ports[{i}]", port.get("name") or ""
            if name in first:
                first_path = first[name]
                explanation = "services and probes that select ports by name will use"
                out.append(
                    f"{port_path}: duplicate port name {go_quote(name)} with {first_path}, {explanation} {first_path}"
                )
            elif name:
                first[name] = port_path
    return out


def _go_struct(port: Object) -> str:
    """Format a port as Go's %+v prints the struct."""
    parts = (
        f"Name:{port.get('name') or ''}",
        f"HostPort:{port.get('hostPort') or 0}",
        f"ContainerPort:{port.get('containerPort') or 0}",
        f"Protocol:{port.get('protocol') or ''}",
        f"HostIP:{port.get('hostIP') or ''}",
    )
    return "{" + " ".join(parts) + "}"
