"""Tests of warnings about pairs of list elements: as if all pairs were compared, but in bounded time and number."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tetrapod.core.podspec.port_warnings import port_warnings
from tetrapod.core.podspec.volume_warnings import overlapping_paths
from tetrapod.generic.filters.warnings import ENOUGH

PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "a-b", "a.b", ""]), min_size=1, max_size=4).map("/".join), max_size=12
)
PORTS = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.sampled_from([1, 2])},
        optional={"hostPort": st.integers(0, 2), "hostIP": st.sampled_from(["", "1.1.1.1", "2.2.2.2"])},
    ),
    max_size=10,
)


def volume(paths: list[str]) -> list[dict[str, Any]]:
    return [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": path} for path in paths]}}]


@given(PATHS)
def test_overlapping_paths_are_those_of_each_pair(written: list[str]) -> None:
    paths = [path.rstrip("/") for path in written]
    pairs = [
        f'"{path}" with "{other}"'
        for i, path in enumerate(paths)
        for other in paths[:i]
        if path and other and (path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/"))
    ]
    assert [text.partition("paths: ")[2] for text in overlapping_paths(volume(written))] == pairs


@given(PORTS)
def test_clashing_ports_are_those_of_each_pair(ports: list[dict[str, Any]]) -> None:
    def clash(one: dict[str, Any], other: dict[str, Any]) -> str:
        (ip, number), (other_ip, other_number) = ((p.get("hostIP", ""), p.get("hostPort", 0)) for p in (one, other))
        if (ip, number) == (other_ip, other_number):
            return "duplicate"
        if not number or not other_number:
            return "overlapping"
        return "dangerously ambiguous" if number == other_number and bool(ip) is not bool(other_ip) else ""

    pairs = [
        f"c.ports[{i}]: {text} port definition with c.ports[{j}]"
        for i, one in enumerate(ports)
        for j, other in enumerate(ports[:i])
        if one["containerPort"] == other["containerPort"] and (text := clash(one, other))
    ]
    assert [text for text in port_warnings([({"ports": ports}, "c")]) if "definition" in text] == pairs


def test_warnings_beyond_the_limit_are_not_built() -> None:
    """Twenty thousand equal ports have two hundred million pairs, whose messages filled the memory."""
    assert len(port_warnings([({"ports": [{"containerPort": 80}] * 20_000}, "c")])) == ENOUGH
    assert len(overlapping_paths(volume(["a"] * 20_000))) == ENOUGH


def test_elements_without_conflicts_are_not_compared() -> None:
    """Comparing all pairs would take a minute."""
    ports = [{"containerPort": 80, "hostPort": 1, "hostIP": f"{i}"} for i in range(1, 8_000)]
    ports += [{"containerPort": 80, "hostPort": i} for i in range(2, 8_000)]
    assert port_warnings([({"ports": ports}, "c")]) == []
    assert overlapping_paths(volume([f"d/{i}" for i in range(10_000)])) == []
