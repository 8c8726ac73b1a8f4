"""The parts of the proxy, made from a `Configuration` and the node.

Upstream: cmd/kube-proxy/app/server.go, newProxyServer; cmd/kube-proxy/app/server_linux.go
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tetrapod.generic.client.events import EventRecorder
from tetrapod.generic.configuration import feature_gates
from tetrapod.kube_proxy import sysctls
from tetrapod.kube_proxy.configuration import Configuration
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.health import ProxyHealth
from tetrapod.kube_proxy.interfaces import has_ipv6, interface_addresses
from tetrapod.kube_proxy.iptables import IPTables, IPTablesError, usable
from tetrapod.kube_proxy.node_ports import NodePortAddresses
from tetrapod.kube_proxy.node_rules import NodeSettings, masquerade_mark
from tetrapod.kube_proxy.packet_counters import PacketCounters
from tetrapod.kube_proxy.pod_traffic import NODE_CIDR, PodTraffic, pod_traffic
from tetrapod.kube_proxy.port_rules import Settings
from tetrapod.kube_proxy.proxier import Parts, Proxier
from tetrapod.kube_proxy.service_health import ServiceHealth
from tetrapod.kube_proxy.service_ports import ServiceName
from tetrapod.kube_proxy.topology import Place
from tetrapod.kube_proxy.warnings import mismatches
from tetrapod.machinery.golang.ip_addresses import Address
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Host:
    """The properties of this node.

    Attributes:
        name: its name.
        primary: the family of its primary address.
        addresses: an address of each family.
        pod_cidrs: the addresses of its pods.
    """

    name: str
    primary: Family
    addresses: Mapping[Family, Address]
    pod_cidrs: Sequence[str]


async def supported_families(configuration: Configuration, host: Host) -> dict[Family, IPTables]:
    """Return the rules of each family that this machine supports.

    Raises:
        ValueError: the family of the node is not supported, or settings are of the wrong family.
    """
    families = await usable()
    if not families:
        raise ValueError(f"iptables is not available on this host : {await _reason()}")
    if not has_ipv6():
        families.pop(Family.IPV6, None)
    if host.primary not in families:
        raise ValueError(f'no support for primary IP family "{host.primary.value}"')
    dual_stack = len(families) == len(Family)
    log.info("kube-proxy running in %s mode", "dual-stack" if dual_stack else "single-stack")
    text, fatal = mismatches(configuration, host.primary, host.pod_cidrs, dual_stack=dual_stack)
    if fatal:
        raise ValueError(f"kube-proxy configuration is incorrect: {text}")
    if text:
        log.error("Kube-proxy configuration may be incomplete or incorrect: %s", text)
    return families


async def _reason() -> str:
    try:
        await IPTables(Family.IPV4).check_present()
    except (IPTablesError, OSError) as error:
        return str(error)
    return ""


def prepare_kernel(configuration: Configuration) -> None:
    """Set the kernel's settings that the rules need.

    Raises:
        OSError: the kernel does not allow it.
    """
    if _localhost_node_ports(configuration, Family.IPV4):
        sysctls.ensure(sysctls.ROUTE_LOCALNET, 1)


def _localhost_node_ports(configuration: Configuration, family: Family) -> bool:
    return (
        configuration.localhost_node_ports
        and NodePortAddresses(family, configuration.node_port_addresses).contains_loopback
    )


class Assembly:
    """Makes the proxiers.

    Args:
        configuration: the settings, with CIDRs in place of keywords for node ports.
        host: this node.
        health: the health of this proxy.
        recorder: creates Events.
    """

    def __init__(self, configuration: Configuration, host: Host, health: ProxyHealth, recorder: EventRecorder) -> None:
        self._configuration = configuration
        self._host = host
        self._health = health
        self._recorder = recorder
        self._counters = PacketCounters()
        if self._counters.supported:
            self._counters.register()

    def proxier(self, iptables: IPTables) -> Proxier:
        """Return the proxier of a family."""
        configuration, family = self._configuration, iptables.family
        node_ports = NodePortAddresses(family, configuration.node_port_addresses)
        node = NodeSettings(
            family,
            masquerade_mark(configuration.masquerade_bit),
            _localhost_node_ports(configuration, family),
            drop_invalid=not sysctls.read(sysctls.TCP_BE_LIBERAL),
            invalid_counter="",
        )
        ports = Settings(
            Place(self._host.name),
            self._host.addresses[family],
            self._pod_traffic(family),
            masquerade_all=configuration.masquerade_all,
            external_ips=feature_gates.enabled("AllowServiceExternalIPs"),
        )
        parts = Parts(iptables, self._health, self._service_health(family, node_ports), self._counters, node_ports)
        return Proxier(
            parts, node, ports, sync_period=configuration.sync_period, min_sync_period=configuration.min_sync_period
        )

    def _pod_traffic(self, family: Family) -> PodTraffic:
        configuration = self._configuration
        mode = configuration.detect_local_mode
        traffic = pod_traffic(
            family,
            mode,
            cidrs=self._host.pod_cidrs if mode == NODE_CIDR else configuration.cluster_cidrs,
            bridge=configuration.bridge_interface,
            interface_prefix=configuration.interface_name_prefix,
        )
        if family is self._host.primary and not traffic.matches:
            log.warning("Detect-local-mode set to %s, but no CIDR is known for the primary IP family", mode)
        return traffic

    def _service_health(self, family: Family, node_ports: NodePortAddresses) -> ServiceHealth:
        addresses = None if node_ports.matches_all else [str(a) for a in node_ports.choose(interface_addresses())]
        return ServiceHealth(self._host.name, family, addresses, self._health, self._report)

    async def _report(self, service: ServiceName, text: str) -> None:
        metadata = {"namespace": service.namespace, "name": service.name, "uid": ""}
        regarding: Object = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
        await self._recorder.record_warning(regarding, "FailedToStartServiceHealthcheck", "Listen", text)
