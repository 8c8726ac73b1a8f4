"""Tests of the choice of UDP connections that are deleted."""

from __future__ import annotations

from tetrapod.kube_proxy.conntrack import Flow, stale
from tetrapod.kube_proxy.endpoints import Endpoint
from tetrapod.kube_proxy.service_ports import ServiceName, ServicePort, ServicePortName

NAME = ServicePortName(ServiceName("ns", "dns"), "dns", "UDP")
PORT = ServicePort(
    NAME, "10.96.0.10", 53, node_port=30053, external_ips=("203.0.113.1",), load_balancer_ips=("198.51.100.1",)
)
SERVING = Endpoint("10.244.0.1", 5353)
FAILED = Endpoint("10.244.0.2", 5353, ready=False, serving=False)


def flow(destination: str, port: int, endpoint: str) -> Flow:
    return Flow(b"", destination, port, endpoint)


def chosen(*flows: Flow, endpoints: tuple[Endpoint, ...] = (SERVING, FAILED), external_ips: bool = True) -> list[Flow]:
    return list(stale(flows, {NAME: PORT}, {NAME: list(endpoints)}, external_ips=external_ips))


def test_connections_to_endpoints_that_do_not_serve_are_deleted_at_all_addresses() -> None:
    addresses = ("10.96.0.10", "203.0.113.1", "198.51.100.1")
    kept = [flow(address, 53, "10.244.0.1:5353") for address in addresses]
    gone = [flow(address, 53, end) for address in addresses for end in ("10.244.0.2:5353", f"{address}:53")]
    assert chosen(*kept, *gone) == gone


def test_connections_to_other_addresses_and_ports_are_kept() -> None:
    assert chosen(flow("10.96.0.11", 53, "x:1"), flow("10.96.0.10", 54, "x:1")) == []
    assert chosen(flow("203.0.113.1", 53, "x:1"), external_ips=False) == []


def test_connections_to_node_ports_are_kept_without_a_serving_endpoint() -> None:
    foreign = flow("192.0.2.1", 30053, "192.0.2.1:30053")
    assert chosen(foreign) == [foreign]
    assert chosen(foreign, endpoints=(FAILED,)) == []
    assert chosen(flow("10.96.0.10", 53, "10.244.0.2:5353"), endpoints=(FAILED,))


def test_other_protocols_are_left_alone() -> None:
    name = NAME._replace(protocol="TCP")
    found = stale([flow("10.96.0.10", 53, "x:1")], {name: ServicePort(name, "10.96.0.10", 53)}, {}, external_ips=True)
    assert list(found) == []
