"""Tests of the addresses that services resolve to, with upstream's errors."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.generic.proxy.resolver import Resolver, Unresolvable
from unit.aggregator.objects import FakeCluster

HTTPS = {"name": "https", "port": 443}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ("10.0.0.9", 443)),
        ({"type": "NodePort"}, ("10.0.0.9", 443)),
        ({"type": "ExternalName", "externalName": "localhost"}, ("localhost", 443)),
        ({"clusterIP": "None"}, 'cannot route to service with ClusterIP "None"'),
        ({"ports": []}, 'no service port 443 found for service "api"'),
    ],
)
def test_services_resolve_to_their_cluster_ip(spec: dict[str, Any], expected: tuple[str, int] | str) -> None:
    cluster = FakeCluster()
    cluster.add(HTTPS)
    cluster.services["ns", "api"]["spec"].update(spec)
    resolver = Resolver(cluster, by_endpoints=False)
    if isinstance(expected, str):
        with pytest.raises(Unresolvable, match=expected):
            resolver.resolve("ns", "api", 443)
    else:
        assert resolver.resolve("ns", "api", 443) == expected


def test_by_endpoints_only_ready_ones_with_the_port_of_that_name() -> None:
    cluster = FakeCluster()
    cluster.add(HTTPS)
    cluster.slices["ns", "api"] = [
        {"ports": [{"name": "other", "port": 1}], "endpoints": [{"addresses": ["192.0.2.1"]}]},
        {
            "ports": [{"name": "https", "port": 9443}],
            "endpoints": [
                {"addresses": ["192.0.2.2"], "conditions": {"ready": False}},
                {"addresses": ["192.0.2.3"], "conditions": {"ready": True}},
                {"addresses": ["192.0.2.4"]},
            ],
        },
    ]
    resolver = Resolver(cluster, by_endpoints=True)
    found = {resolver.resolve("ns", "api", 443) for _ in range(100)}
    assert found == {("192.0.2.3", 9443), ("192.0.2.4", 9443)}


def test_by_endpoints_the_first_family_of_the_service_is_preferred_and_the_first_address_of_an_endpoint_taken() -> None:
    cluster = FakeCluster()
    cluster.add(HTTPS, ipFamilies=["IPv6", "IPv4"])
    ports = [{"name": "https", "port": 9443}]
    v6 = {"addressType": "IPv6", "ports": ports, "endpoints": [{"addresses": ["2001:db8::1", "2001:db8::9"]}]}
    v4 = {
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": ["192.0.2.1"]}, {"addresses": ["192.0.2.2"]}],
    }
    cluster.slices["ns", "api"] = [v4, v6]
    resolver = Resolver(cluster, by_endpoints=True)
    assert {resolver.resolve("ns", "api", 443) for _ in range(50)} == {("2001:db8::1", 9443)}
    v6["endpoints"] = [{"addresses": ["2001:db8::1"], "conditions": {"ready": False}}]
    assert {resolver.resolve("ns", "api", 443) for _ in range(100)} == {("192.0.2.1", 9443), ("192.0.2.2", 9443)}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"type": "ExternalName"}, 'unsupported service type "ExternalName"'),
        ({"type": "LoadBalancer", "ports": []}, 'no service port 443 found for service "api"'),
        ({}, 'no endpoints available for service "api"'),
    ],
)
def test_resolving_by_endpoints_reports_upstreams_errors(spec: dict[str, Any], text: str) -> None:
    cluster = FakeCluster()
    cluster.add(HTTPS)
    cluster.services["ns", "api"]["spec"].update(spec)
    with pytest.raises(Unresolvable, match=text):
        Resolver(cluster, by_endpoints=True).resolve("ns", "api", 443)
