"""Tests of the choice of endpoints by policies, hints and conditions."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.kube_proxy.endpoints import Endpoint
from tetrapod.kube_proxy.service_ports import ServiceName, ServicePort, ServicePortName
from tetrapod.kube_proxy.topology import Place, reachable

NAME = ServicePortName(ServiceName("ns", "svc"), "", "TCP")
HERE = Place("node1", "a")
EXTERNAL_LOCAL = {"external_policy_local": True, "node_port": 30000}


def port(**values: Any) -> ServicePort:
    return ServicePort(NAME, "10.0.0.1", 80, **values)


def endpoint(ip: str, hints: str = "", *, local: bool = False, state: str = "ready") -> Endpoint:
    """Return an endpoint. Hints in lower case name zones, and others nodes."""
    zones = frozenset(hint for hint in hints.split(",") if hint and not hint.startswith("node"))
    nodes = frozenset(hint for hint in hints.split(",") if hint.startswith("node"))
    ready, serving, terminating = {
        "ready": (True, True, False),
        "leaving": (False, True, True),
        "failed": (False, False, False),
    }[state]
    return Endpoint(ip, 80, local, ready, serving, terminating, zones, nodes)


def ips(endpoints: list[Endpoint]) -> str:
    return "".join(sorted(endpoint.ip for endpoint in endpoints))


@pytest.mark.parametrize(
    ("endpoints", "expected"),
    [
        ([endpoint("1", "a"), endpoint("2", "b")], "1"),
        ([endpoint("1", "a"), endpoint("2")], "12"),  # an endpoint without a hint makes all hints void
        ([endpoint("1", "b"), endpoint("2", "c")], "12"),  # none is for this zone
        ([endpoint("1", "b,node1"), endpoint("2", "a,node2")], "1"),  # nodes precede zones
        ([endpoint("1", "b,node3"), endpoint("2", "a,node2")], "2"),
        ([endpoint("1", "a", state="failed"), endpoint("2", "b")], "2"),
        ([endpoint("1", "a"), endpoint("2", state="failed")], "1"),  # hints of unready endpoints do not matter
        ([endpoint("1", state="leaving"), endpoint("2", state="failed")], "1"),
        ([endpoint("1", state="failed")], ""),
        ([], ""),
    ],
)
def test_endpoints_of_the_policy_cluster(endpoints: list[Endpoint], expected: str) -> None:
    found = reachable(endpoints, port(), HERE)
    assert (ips(found.cluster), ips(found.all), found.local) == (expected, expected, [])
    assert found.anywhere == bool(expected)


@pytest.mark.parametrize(
    ("endpoints", "local", "everything"),
    [
        ([endpoint("1", local=True), endpoint("2")], "1", "12"),
        ([endpoint("1", local=True, state="leaving"), endpoint("2")], "1", "12"),  # each policy falls back by itself
        ([endpoint("1", local=True, state="failed"), endpoint("2")], "", "2"),
        ([endpoint("1", "b", local=True), endpoint("2", "a")], "1", "12"),  # hints do not matter for local traffic
    ],
)
def test_endpoints_of_the_external_policy_local(endpoints: list[Endpoint], local: str, everything: str) -> None:
    found = reachable(endpoints, port(**EXTERNAL_LOCAL), HERE)
    assert (ips(found.local), ips(found.all), found.anywhere) == (local, everything, True)


def test_the_internal_policy_local_alone_uses_no_endpoints_of_other_nodes() -> None:
    found = reachable([endpoint("1"), endpoint("2", state="leaving")], port(internal_policy_local=True), HERE)
    assert (found.cluster, found.local, found.all, found.anywhere) == ([], [], [], True)
