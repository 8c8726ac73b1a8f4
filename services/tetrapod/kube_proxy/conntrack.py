"""Removes the kernel's records of UDP connections to Services that lead to endpoints which no longer serve.

UDP has no end of a connection: a client that keeps sending would keep a removed endpoint for ever. The records are
read and deleted over netlink, so that the program conntrack is not needed.

Upstream: pkg/proxy/conntrack
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tetrapod.kube_proxy import metrics
from tetrapod.kube_proxy.endpoints import Endpoints
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.netlink import Netfilter, attribute, attributes
from tetrapod.kube_proxy.service_ports import ServicePort, ServicePorts
from tetrapod.machinery.golang.ip_addresses import join_host_port

log = logging.getLogger(__name__)

_SUBSYSTEM: Final = 1
_GET, _DELETE = 1, 2
_TUPLE_ORIGINAL, _TUPLE_REPLY = 1, 2
_TUPLE_ADDRESSES, _TUPLE_PROTOCOL = 1, 2
_SOURCE = {Family.IPV4: 1, Family.IPV6: 3}
_DESTINATION = {Family.IPV4: 2, Family.IPV6: 4}
_PROTOCOL_NUMBER, _SOURCE_PORT, _DESTINATION_PORT = 1, 2, 3
_SOCKET_FAMILY = {Family.IPV4: socket.AF_INET, Family.IPV6: socket.AF_INET6}


@dataclass(frozen=True, slots=True)
class Flow:
    """A record of a UDP connection.

    Attributes:
        original: the encoded description of its first packets, by which it is deleted.
        destination: the address to which the client sends.
        destination_port: the port to which the client sends.
        endpoint: the address and port that answers.
    """

    original: bytes
    destination: str
    destination_port: int
    endpoint: str


def stale(flows: Iterable[Flow], ports: ServicePorts, endpoints: Endpoints, *, external_ips: bool) -> Iterator[Flow]:
    """Yield the flows to UDP ports of Services that no serving endpoint answers.

    Traffic policies and hints do not matter: a change of them leaves existing connections alone, as with TCP. A flow
    to a node port is only recognized by the port. It is kept if the Service has no serving endpoint, because it might
    lead to another machine.

    Args:
        flows: the flows of a family.
        ports: the ports of its Services.
        endpoints: their endpoints.
        external_ips: whether Services may be reached at their external IPs.
    """
    by_address: dict[tuple[str, int], set[str]] = {}
    by_node_port: dict[int, set[str]] = {}
    for name, port in ports.items():
        if name.protocol != "UDP":
            continue
        serving = {str(endpoint) for endpoint in endpoints.get(name, ()) if endpoint.serving}
        for address in _addresses(port, external_ips=external_ips):
            by_address[address, port.port] = serving
        if port.node_port and serving:
            by_node_port[port.node_port] = serving
    for flow in flows:
        if _is_foreign(flow, by_address.get((flow.destination, flow.destination_port))) or _is_foreign(
            flow, by_node_port.get(flow.destination_port)
        ):
            yield flow


def _addresses(port: ServicePort, *, external_ips: bool) -> tuple[str, ...]:
    return (port.cluster_ip, *port.load_balancer_ips, *(port.external_ips if external_ips else ()))


def _is_foreign(flow: Flow, serving: set[str] | None) -> bool:
    return serving is not None and flow.endpoint not in serving


class FlowTable:
    """The kernel's records of connections in one family.

    Raises:
        OSError: the kernel does not show them to this process.
    """

    def __init__(self, family: Family) -> None:
        self._family = family
        self._socket = Netfilter(_SUBSYSTEM)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def udp(self) -> list[Flow]:
        """Return the flows of UDP."""
        number = _SOCKET_FAMILY[self._family]
        decoded = (self._flow(attributes(data)) for data in self._socket.dump(_GET, family=number))
        return [flow for flow in decoded if flow is not None]

    def delete(self, flow: Flow) -> None:
        """Delete a flow."""
        original = attribute(_TUPLE_ORIGINAL, flow.original, nested=True)
        self._socket.execute(_DELETE, original, family=_SOCKET_FAMILY[self._family])

    def _flow(self, record: Mapping[int, bytes]) -> Flow | None:
        original, reply = attributes(record[_TUPLE_ORIGINAL]), attributes(record[_TUPLE_REPLY])
        sent, answered = attributes(original[_TUPLE_PROTOCOL]), attributes(reply[_TUPLE_PROTOCOL])
        if sent[_PROTOCOL_NUMBER] != bytes([socket.IPPROTO_UDP]):
            return None
        destination = attributes(original[_TUPLE_ADDRESSES])[_DESTINATION[self._family]]
        answering = attributes(reply[_TUPLE_ADDRESSES])[_SOURCE[self._family]]
        endpoint = join_host_port(str(ipaddress.ip_address(answering)), _port(answered[_SOURCE_PORT]))
        return Flow(
            record[_TUPLE_ORIGINAL],
            str(ipaddress.ip_address(destination)),
            _port(sent[_DESTINATION_PORT]),
            endpoint,
        )


def _port(data: bytes) -> int:
    (port,) = struct.unpack(">H", data)
    return int(port)


def delete_stale_flows(family: Family, ports: ServicePorts, endpoints: Endpoints, *, external_ips: bool) -> None:
    """Delete the stale flows of a family. Errors are logged.

    Args:
        family: the family.
        ports: the ports of its Services.
        endpoints: their endpoints.
        external_ips: whether Services may be reached at their external IPs.
    """
    began, deleted, failures = time.monotonic(), 0, 0
    try:
        table = FlowTable(family)
    except OSError as error:
        log.error("Failed to list conntrack entries: %s", error)
        return
    try:
        flows = table.udp()
        for flow in stale(flows, ports, endpoints, external_ips=external_ips):
            try:
                table.delete(flow)
                deleted += 1
            except FileNotFoundError:
                continue  # it has ended
            except OSError as error:
                failures += 1
                log.error("Failed to clear all conntrack entries: %s", error)
    except OSError as error:
        log.error("Failed to list conntrack entries: %s", error)
        return
    finally:
        table.close()
    log.debug("Finished reconciling conntrack entries: %d deleted, %d failures", deleted, failures)
    metrics.CONNTRACK_SECONDS.observe((family.value,), time.monotonic() - began)
    metrics.CONNTRACK_DELETED.add((family.value,), deleted)
