"""Container ports that say the same twice, or nearly (upstream: the ports of pkg/api/pod/warnings.go)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tetrapod.generic.filters.warnings import ENOUGH
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object

_Placed = tuple[str, Object]


class _Others:
    """Ports of one number and protocol, by what another one must have to clash with them: nobody is looked at who does not."""

    def __init__(self) -> None:
        self._all: list[tuple[int, _Placed]] = []
        self._by_number: dict[int, list[tuple[int, _Placed]]] = defaultdict(list)
        self._by_address: dict[tuple[int, str], list[tuple[int, _Placed]]] = defaultdict(list)

    def add(self, placed: _Placed) -> None:
        entry, (number, ip) = (len(self._all), placed), _address(placed[1])
        self._all.append(entry)
        self._by_number[number].append(entry)
        self._by_address[number, ip].append(entry)

    def clashing(self, port: Object) -> Iterable[_Placed]:
        """In the order in which they were added."""
        number, ip = _address(port)
        if not number:
            found = self._all
        else:
            named = self._by_address[number, ip] + self._by_address[number, ""] if ip else self._by_number[number]
            found = sorted(self._by_number[0] + named, key=lambda entry: entry[0])
        return (placed for _, placed in found)


def port_warnings(containers: list[tuple[Object, str]]) -> list[str]:
    placed = [(f"{path}.ports[{i}]", port) for container, path in containers for i, port in enumerate(container.get("ports") or ())]
    if not placed:
        return []
    return _definitions(placed) + _names(containers)


def _definitions(placed: list[_Placed]) -> list[str]:
    out: list[str] = []
    seen: dict[tuple[int, str], _Others] = defaultdict(_Others)
    for at, port in placed:
        if port.get("hostIP") and not port.get("hostPort"):
            out.append(f"{at}: hostIP set without hostPort: {_go_struct(port)}")
        others = seen[port.get("containerPort") or 0, port.get("protocol") or ""]
        for where, other in others.clashing(port):
            out.append(f"{at}: {_clash(port, other)} port definition with {where}")
            if len(out) >= ENOUGH:
                return out
        others.add((at, port))
    return out


def _clash(port: Object, other: Object) -> str:
    if _address(port) == _address(other):
        return "duplicate"
    return "dangerously ambiguous" if port.get("hostPort") and other.get("hostPort") else "overlapping"


def _address(port: Object) -> tuple[int, str]:
    """On the host."""
    return port.get("hostPort") or 0, port.get("hostIP") or ""


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
