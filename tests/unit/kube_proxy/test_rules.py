"""Tests of the text of rules. The expected rules are those of upstream's test of all kinds of Services together.

Upstream: pkg/proxy/iptables/proxier_test.go, TestOverallIPTablesRules
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest

from tetrapod.kube_proxy.endpoints import Endpoint
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.node_ports import NodePortAddresses, expand
from tetrapod.kube_proxy.node_rules import (
    NodeSettings,
    first_tables,
    forwarding_rules,
    masquerade_mark,
    node_port_entries,
)
from tetrapod.kube_proxy.pod_traffic import PodTraffic, pod_traffic
from tetrapod.kube_proxy.port_rules import PortRules, Settings, port_rules
from tetrapod.kube_proxy.service_ports import ports_of
from tetrapod.kube_proxy.topology import Place
from unit.kube_proxy.objects import NODE, at, endpoint_slice, only_endpoints, only_port, service

UPSTREAM = Path(__file__).parents[2] / "facts/kube_proxy_rules.txt"
P80 = {"name": "p80", "port": 80}
SETTINGS = Settings(
    Place(NODE),
    ipaddress.ip_address("192.168.0.2"),
    PodTraffic("-s 10.0.0.0/8"),
    localhost_counter="localhost_nps_accepted_pkts",
)
STICKY = {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}}
CASES: tuple[tuple[dict[str, Any], list[dict[str, Any]]], ...] = (
    (service("ns1", "svc1", "172.30.0.41", P80), [at("10.180.0.1")]),
    (
        service(
            "ns2",
            "svc2",
            "172.30.0.42",
            {**P80, "nodePort": 3001},
            type="LoadBalancer",
            externalTrafficPolicy="Local",
            externalIPs=["192.168.99.22"],
            healthCheckNodePort=30000,
            ingress=[{"ip": "1.2.3.4"}],
        ),
        [at("10.180.0.2")],
    ),
    (service("ns3", "svc3", "172.30.0.43", {**P80, "nodePort": 3003}, type="NodePort"), [at("10.180.0.3")]),
    (
        service("ns4", "svc4", "172.30.0.44", P80, type="NodePort", externalIPs=["192.168.99.33"]),
        [at("10.180.0.4"), at("10.180.0.5", NODE)],
    ),
    (
        service(
            "ns5",
            "svc5",
            "172.30.0.45",
            {**P80, "nodePort": 3002},
            type="LoadBalancer",
            externalTrafficPolicy="Cluster",
            healthCheckNodePort=30000,
            loadBalancerSourceRanges=[" 203.0.113.0/25"],
            ingress=[{"ip": "5.6.7.8"}],
            **STICKY,
        ),
        [at("10.180.0.3")],
    ),
    (service("ns6", "svc6", "172.30.0.46", P80), []),
)


def node_settings(**changes: Any) -> NodeSettings:
    values: dict[str, Any] = {
        "family": Family.IPV4,
        "masquerade_mark": masquerade_mark(14),
        "localhost_node_ports": True,
        "drop_invalid": True,
        "invalid_counter": "ct_state_invalid_dropped_pkts",
    }
    return NodeSettings(**{**values, **changes})


def rules_of(obj: dict[str, Any], *endpoints: dict[str, Any], settings: Settings = SETTINGS) -> PortRules:
    metadata = obj["metadata"]
    listed: list[Endpoint] = []
    if endpoints:
        listed = only_endpoints(endpoint_slice(metadata["namespace"], metadata["name"], P80, *endpoints))
    return port_rules(only_port(obj), listed, settings)


def test_all_kinds_of_services_have_upstreams_rules() -> None:
    settings = node_settings(masquerade_mark="0x4000")
    filter_table, nat = first_tables(settings)
    for obj, endpoints in CASES:
        rules = rules_of(obj, *endpoints)
        filter_table.rules += rules.filter
        nat.rules += rules.dispatch + rules.rules
        nat.chains += rules.chains
    nat.rules += node_port_entries(settings, None)
    filter_table.rules += forwarding_rules(settings)
    assert sorted((filter_table.text() + nat.text()).splitlines()) == sorted(UPSTREAM.read_text().splitlines())


def test_a_table_has_its_chains_before_its_rules() -> None:
    filter_table, _ = first_tables(node_settings())
    lines = filter_table.text().splitlines()
    assert (lines[0], lines[-1]) == ("*filter", "COMMIT")
    assert [line[0] for line in lines[1:-1]] == [":"] * len(filter_table.chains) + ["-"] * len(filter_table.rules)


def test_the_internal_policy_local_drops_packets_without_endpoints_on_this_node() -> None:
    obj = service("ns", "svc", "172.30.0.41", P80, internalTrafficPolicy="Local")
    rules = rules_of(obj, at("10.0.0.1", "node2"))
    assert rules == PortRules(
        filter=[
            '-A KUBE-SERVICES -m comment --comment "ns/svc:p80 has no local endpoints" -m tcp -p tcp '
            "-d 172.30.0.41 --dport 80 -j DROP"
        ],
        internal_without_local=True,
    )


def test_a_terminating_endpoint_is_used_if_no_other_is_ready() -> None:
    obj = service("ns", "svc", "172.30.0.41", P80)
    leaving = at("10.0.0.1", ready=False, serving=True, terminating=True)
    assert "10.0.0.1" in "\n".join(rules_of(obj, leaving).rules)
    assert "10.0.0.1" not in "\n".join(rules_of(obj, leaving, at("10.0.0.2")).rules)


def test_a_load_balancer_that_replaces_addresses_has_no_rules() -> None:
    obj = service("ns", "svc", "172.30.0.41", P80, type="LoadBalancer", ingress=[{"ip": "1.2.3.4", "ipMode": "Proxy"}])
    rules = rules_of(obj, at("10.0.0.1"))
    assert "1.2.3.4" not in "\n".join([*rules.filter, *rules.dispatch, *rules.rules])


def test_a_node_in_a_source_range_may_use_the_load_balancer_itself() -> None:
    obj = service(
        "ns",
        "svc",
        "172.30.0.41",
        P80,
        type="LoadBalancer",
        ingress=[{"ip": "1.2.3.4"}],
        loadBalancerSourceRanges=["192.168.0.0/24"],
    )
    sources = [
        rule.split("-s ")[1].split()[0]
        for rule in rules_of(obj, at("10.0.0.1")).rules
        if "KUBE-FW" in rule and "-s " in rule
    ]
    assert sources == ["192.168.0.0/24", "1.2.3.4"]


def test_rules_of_endpoints_have_no_comments_in_a_large_cluster() -> None:
    settings = Settings(Place(NODE), ipaddress.ip_address("192.168.0.2"), brief=True)
    rules = rules_of(service("ns", "svc", "172.30.0.41", P80), at("10.0.0.1"), settings=settings).rules
    assert rules
    assert not [rule for rule in rules if "comment" in rule]


def test_only_services_with_an_address_of_the_family_have_ports() -> None:
    obj = service("ns", "svc", "172.30.0.41", P80)
    assert len(ports_of(obj, Family.IPV4)) == 1
    assert not ports_of(obj, Family.IPV6)
    assert not ports_of(service("ns", "svc", "None", P80), Family.IPV4)
    assert not ports_of(service("ns", "svc", "172.30.0.41", P80, type="ExternalName"), Family.IPV4)


def test_a_service_of_an_old_server_has_its_only_address() -> None:
    obj = service("ns", "svc", "172.30.0.41", P80)
    del obj["spec"]["ipFamilies"], obj["spec"]["clusterIPs"]
    assert only_port(obj).cluster_ip == "172.30.0.41"
    assert not ports_of(obj, Family.IPV6)


def test_addresses_of_both_families_belong_to_their_rules() -> None:
    obj = service("ns", "svc", "172.30.0.41", P80, externalIPs=["192.0.2.1", "2001:DB8::0001"])
    obj["spec"] |= {"ipFamilies": ["IPv6", "IPv4"], "clusterIPs": ["fd00::0:1", "172.30.0.41"]}
    found = [(only_port(obj, family).cluster_ip, only_port(obj, family).external_ips) for family in Family]
    assert found == [("172.30.0.41", ("192.0.2.1",)), ("fd00::1", ("2001:db8::1",))]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "-m addrtype --dst-type LOCAL"),
        ({"localhost_node_ports": False}, "-m addrtype --dst-type LOCAL ! -d 127.0.0.0/8"),
        ({"family": Family.IPV6, "localhost_node_ports": False}, "-m addrtype --dst-type LOCAL ! -d ::1/128"),
    ],
)
def test_node_ports_at_localhost_are_excluded_where_they_do_not_work(settings: dict[str, Any], expected: str) -> None:
    (entry,) = node_port_entries(node_settings(**settings), None)
    assert entry.endswith(f'this chain" {expected} -j KUBE-NODEPORTS')


def test_node_ports_are_limited_to_the_chosen_addresses() -> None:
    addresses = [ipaddress.ip_address(text) for text in ("10.0.0.5", "127.0.0.1")]
    chosen = NodePortAddresses(Family.IPV4, ["10.0.0.0/8", "127.0.0.0/8", "fd00::/8"]).choose(addresses)
    assert chosen == addresses
    entries = node_port_entries(node_settings(localhost_node_ports=False), chosen)
    assert [entry.split("-d ")[1] for entry in entries] == ["10.0.0.5 -j KUBE-NODEPORTS"]


def test_keywords_of_node_port_addresses_are_expanded() -> None:
    addresses = {Family.IPV4: ipaddress.ip_address("10.0.0.5"), Family.IPV6: ipaddress.ip_address("::1")}
    assert expand(["primary", "localhost", "192.0.2.0/24"], addresses) == (
        "10.0.0.5/32",
        "127.0.0.0/8",
        "::1/128",
        "192.0.2.0/24",
    )
    assert expand(["all"], addresses) == ("0.0.0.0/0", "::/0")


@pytest.mark.parametrize(("bit", "mark"), [(0, "0x00000001"), (14, "0x00004000"), (31, "0x80000000")])
def test_the_mark_is_written_as_upstream_writes_it(bit: int, mark: str) -> None:
    assert masquerade_mark(bit) == mark


def test_traffic_of_pods_is_matched_by_addresses_or_interfaces() -> None:
    cidrs = ["fd00::/8", "10.0.0.0/8"]
    assert pod_traffic(Family.IPV4, "ClusterCIDR", cidrs=cidrs) == PodTraffic("-s 10.0.0.0/8")
    assert pod_traffic(Family.IPV6, "NodeCIDR", cidrs=cidrs) == PodTraffic("-s fd00::/8")
    assert pod_traffic(Family.IPV6, "ClusterCIDR", cidrs=cidrs[1:]) == PodTraffic()
    assert pod_traffic(Family.IPV4, "BridgeInterface", bridge="cni0").differs == "! -i cni0"
    assert pod_traffic(Family.IPV4, "InterfaceNamePrefix", interface_prefix="veth") == PodTraffic("-i veth+")
