"""Tests of the addresses of the node, and of settings that do not fit it.

The texts are those of kube-proxy (cmd/kube-proxy/app/server_test.go).
"""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from tetrapod.kube_proxy.configuration import Configuration
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.node import addresses_by_family, node_addresses
from tetrapod.kube_proxy.warnings import doubts, mismatches

V4, V6 = Family.IPV4, Family.IPV6


def node(*addresses: tuple[str, str]) -> dict[str, Any]:
    return {"status": {"addresses": [{"type": kind, "address": address} for kind, address in addresses]}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (None, []),
        (node(("Hostname", "10.0.0.9")), []),
        (node(("ExternalIP", "1.2.3.4"), ("InternalIP", "10.0.0.1")), ["10.0.0.1"]),
        (node(("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2")), ["10.0.0.1"]),
        (node(("ExternalIP", "1.2.3.4"), ("InternalIP", "fd00::1")), ["fd00::1", "1.2.3.4"]),
    ],
)
def test_a_node_has_one_address_of_each_family(obj: dict[str, Any] | None, expected: list[str]) -> None:
    assert [str(address) for address in node_addresses(obj)] == expected


@pytest.mark.parametrize(
    ("known", "bind", "primary", "expected"),
    [
        ([], "0.0.0.0", V4, ["127.0.0.1", "::1"]),
        (["10.0.0.1"], "0.0.0.0", V4, ["10.0.0.1", "::1"]),
        (["fd00::1", "10.0.0.1"], "::", V6, ["10.0.0.1", "fd00::1"]),
        (["10.0.0.1", "fd00::1"], "fd00::2", V6, ["10.0.0.1", "fd00::2"]),
        ([], "192.0.2.1", V4, ["192.0.2.1", "::1"]),
    ],
)
def test_the_primary_address_is_the_configured_one_or_that_of_the_node(
    known: list[str], bind: str, primary: Family, expected: list[str]
) -> None:
    family, addresses = addresses_by_family([ipaddress.ip_address(text) for text in known], bind)
    assert (family, [str(addresses[each]) for each in Family]) == (primary, expected)


@pytest.mark.parametrize(
    ("entries", "cidrs", "text"),
    [
        (
            (),
            (),
            "nodePortAddresses is unset; NodePort connections will be accepted on all local IPs. Consider using "
            "`--nodeport-addresses primary`",
        ),
        (("10.0.0.1/32",), (), ""),
        (
            ("10.0.0.1/32",),
            ("10.0.0.0/8", "fd00::/8"),
            "cluster appears to be dual-stack but nodePortAddresses contains only IPv4 addresses; NodePort connections "
            "will be accepted on all local IPv6 IPs",
        ),
        (
            ("fd00::1/128",),
            (),
            "cluster appears to be IPv4-primary but nodePortAddresses contains only IPv6 addresses; NodePort "
            "connections will be accepted on all local IPv4 IPs",
        ),
    ],
)
def test_open_node_ports_are_pointed_out(entries: tuple[str, ...], cidrs: tuple[str, ...], text: str) -> None:
    assert doubts(Configuration(node_port_addresses=entries, cluster_cidrs=cidrs), V4, ()) == text


@pytest.mark.parametrize(
    ("settings", "pods", "dual", "expected"),
    [
        ({}, (), False, ("", False)),
        (
            {"cluster_cidrs": ("fd00::/8",)},
            (),
            True,
            ("cluster is IPv4-primary but clusterCIDRs contains only IPv6 addresses", False),
        ),
        (
            {"cluster_cidrs": ("fd00::/8",)},
            (),
            False,
            ("cluster is IPv4-only but clusterCIDRs contains only IPv6 addresses", True),
        ),
        (
            {"detect_local_mode": "NodeCIDR"},
            ("fd00::/64",),
            True,
            ("cluster is IPv4-primary but node.spec.podCIDRs contains only IPv6 addresses", True),
        ),
        (
            {"healthz_bind_address": "[fd00::1]:1", "metrics_bind_address": "[::]:2"},
            (),
            False,
            ("cluster is IPv4-only but healthzBindAddress is IPv6", False),
        ),
    ],
)
def test_settings_of_the_wrong_family_are_errors_where_they_never_worked(
    settings: dict[str, Any], pods: tuple[str, ...], dual: bool, expected: tuple[str, bool]
) -> None:
    configuration = Configuration(**settings).completed()
    assert mismatches(configuration, V4, pods, dual_stack=dual) == expected
