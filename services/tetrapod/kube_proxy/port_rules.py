"""The rules of one port of a Service.

Rules in chains that all ports share lead packets to chains of the port, or reject or drop them. The chains of the port
choose an endpoint, whose chain replaces the destination.

Upstream: pkg/proxy/iptables/proxier.go, syncProxyRules
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tetrapod.kube_proxy import chains
from tetrapod.kube_proxy.chains import endpoint_chain, port_chains
from tetrapod.kube_proxy.endpoints import Endpoint
from tetrapod.kube_proxy.pod_traffic import PodTraffic
from tetrapod.kube_proxy.service_ports import ServicePort
from tetrapod.kube_proxy.tables import quoted
from tetrapod.kube_proxy.topology import Place, Reachable, reachable
from tetrapod.machinery.golang.ip_addresses import Address


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the rules of all ports.

    Attributes:
        place: this node.
        node_address: the address of this node.
        pod_traffic: the match of traffic from pods.
        masquerade_all: whether all traffic to cluster IPs gets the address of the node.
        localhost_counter: the kernel's counter of packets to node ports of localhost; "" for none.
        brief: whether rules of endpoints have no comments, because there are many.
        external_ips: whether Services may be reached at their external IPs.
    """

    place: Place
    node_address: Address
    pod_traffic: PodTraffic = field(default_factory=PodTraffic)
    masquerade_all: bool = False
    localhost_counter: str = ""
    brief: bool = False
    external_ips: bool = True


@dataclass(slots=True)
class PortRules:
    """The rules of a port.

    Attributes:
        filter: rules in shared chains of the table filter.
        dispatch: rules in shared chains of the table nat.
        chains: the names of the chains of the port in the table nat.
        rules: the rules in these chains.
        internal_without_local: whether traffic to the cluster IP is dropped, since no endpoint is on this node.
        external_without_local: whether traffic from outside is dropped, since no endpoint is on this node.
    """

    filter: list[str] = field(default_factory=list)
    dispatch: list[str] = field(default_factory=list)
    chains: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    internal_without_local: bool = False
    external_without_local: bool = False


def port_rules(port: ServicePort, endpoints: Sequence[Endpoint], settings: Settings) -> PortRules:
    """Return the rules of a port with these endpoints."""
    return _Writer(port, reachable(endpoints, port, settings.place), settings).write()


class _Writer:
    """Writes the rules of one port. Upstream's names for its values are kept where they are clear."""

    def __init__(self, port: ServicePort, endpoints: Reachable, settings: Settings) -> None:
        self._port = port
        self._name = str(port.name)
        self._endpoints = endpoints
        self._settings = settings
        self._match = f"-m {port.protocol} -p {port.protocol}"
        self._chains = port_chains(self._name, port.protocol)
        self._has_endpoints = endpoints.anywhere
        self._has_internal = endpoints.anywhere and not (port.internal_policy_local and not endpoints.local)
        self._has_external = endpoints.anywhere and not (port.external_policy_local and not endpoints.local)
        self._has_firewall = bool(endpoints.anywhere and port.load_balancer_ips and port.source_ranges)
        self._external_ips = port.external_ips if settings.external_ips else ()
        self._out = PortRules()

    def write(self) -> PortRules:
        """Return the rules."""
        self._write_cluster_ip()
        self._write_external_ips()
        self._write_load_balancer_ips()
        self._write_node_port()
        self._write_health_check_port()
        if self._has_internal:
            self._write_masquerade_of_cluster_ip()
        if self._has_endpoints and self._port.externally_accessible:
            self._write_external_chain()
        if self._has_firewall:
            self._write_firewall_chain()
        if self._port.uses_cluster_endpoints and self._endpoints.cluster:
            self._write_policy_chain(self._chains.cluster, self._endpoints.cluster)
        if self._port.uses_local_endpoints and self._endpoints.local:
            self._write_policy_chain(self._chains.local, self._endpoints.local)
        for endpoint in self._endpoints.all:
            self._write_endpoint_chain(endpoint)
        self._out.internal_without_local = self._has_endpoints and not self._has_internal
        self._out.external_without_local = self._has_endpoints and not self._has_external
        return self._out

    # --- rules in shared chains

    @property
    def _internal_chain(self) -> str:
        return self._chains.local if self._port.internal_policy_local else self._chains.cluster

    @property
    def _cluster_ip_match(self) -> str:
        destination = f"-d {self._port.cluster_ip} --dport {self._port.port}"
        return f"{quoted(f'{self._name} cluster IP')} {self._match} {destination}"

    @property
    def _lack(self) -> tuple[str, str]:
        """The comment and the target of a rule that keeps packets away: no endpoint is there, or none on this node."""
        if self._has_endpoints:
            return quoted(f"{self._name} has no local endpoints"), "DROP"
        return quoted(f"{self._name} has no endpoints"), "REJECT"

    def _write_cluster_ip(self) -> None:
        if self._has_internal:
            self._out.dispatch.append(f"-A {chains.SERVICES} {self._cluster_ip_match} -j {self._internal_chain}")
            return
        comment, target = self._lack
        destination = f"-d {self._port.cluster_ip} --dport {self._port.port}"
        self._out.filter.append(f"-A {chains.SERVICES} {comment} {self._match} {destination} -j {target}")

    def _dispatch(self, what: str, address: str, chain: str) -> None:
        comment = quoted(f"{self._name} {what} IP")
        destination = f"-d {address} --dport {self._port.port}"
        self._out.dispatch.append(f"-A {chains.SERVICES} {comment} {self._match} {destination} -j {chain}")

    def _keep_away(self, destination: str, before: str = "") -> None:
        comment, target = self._lack
        head = f"-A {chains.EXTERNAL_SERVICES} {comment}{before}"
        self._out.filter.append(f"{head} {self._match} {destination} -j {target}")

    def _write_external_ips(self) -> None:
        for address in self._external_ips:
            if self._has_endpoints:
                self._dispatch("external", address, self._chains.external)
            if not self._has_external:
                self._keep_away(f"-d {address} --dport {self._port.port}")

    def _write_load_balancer_ips(self) -> None:
        for address in self._port.load_balancer_ips:
            destination = f"-d {address} --dport {self._port.port}"
            if self._has_endpoints:
                chain = self._chains.firewall if self._has_firewall else self._chains.external
                self._dispatch("loadbalancer", address, chain)
            if self._has_firewall:
                comment = quoted(f"{self._name} traffic not accepted by {self._chains.firewall}")
                self._out.filter.append(f"-A {chains.PROXY_FIREWALL} {comment} {self._match} {destination} -j DROP")
            if not self._has_external:
                self._keep_away(destination)

    def _write_node_port(self) -> None:
        if not self._port.node_port:
            return
        head = f"-A {chains.NODE_PORTS} -m comment --comment {self._name} {self._match}"
        port = f"--dport {self._port.node_port}"
        if self._has_endpoints:
            if counter := self._settings.localhost_counter:
                count = f"-m nfacct --nfacct-name {counter}"
                self._out.dispatch.append(f"{head} -d 127.0.0.0/8 {port} {count} -j {self._chains.external}")
            self._out.dispatch.append(f"{head} {port} -j {self._chains.external}")
        if not self._has_external:
            self._keep_away(port, " -m addrtype --dst-type LOCAL")

    def _write_health_check_port(self) -> None:
        if port := self._port.health_check_node_port:
            comment = quoted(f"{self._name} health check node port")
            self._out.filter.append(f"-A {chains.NODE_PORTS} {comment} -m tcp -p tcp --dport {port} -j ACCEPT")

    # --- rules in chains of the port

    def _write_masquerade_of_cluster_ip(self) -> None:
        """Let packets from outside the cluster to the cluster IP get the node's address.

        Their answers then come back through this node, which a route for all cluster IPs may name.
        """
        head = f"-A {self._internal_chain} {self._cluster_ip_match}"
        if self._settings.masquerade_all:
            self._out.rules.append(f"{head} -j {chains.MARK_MASQUERADE}")
        elif self._settings.pod_traffic.matches:
            self._out.rules.append(f"{head} {self._settings.pod_traffic.differs} -j {chains.MARK_MASQUERADE}")

    def _write_external_chain(self) -> None:
        chain = self._chains.external
        self._out.chains.append(chain)
        if self._port.external_policy_local:
            self._write_exceptions_of_the_local_policy(chain)
        else:  # the packet may leave the node again, and the answer has to come back here
            comment = quoted(f"masquerade traffic for {self._name} external destinations")
            self._out.rules.append(f"-A {chain} {comment} -j {chains.MARK_MASQUERADE}")
        if self._has_external:
            target = self._chains.local if self._port.external_policy_local else self._chains.cluster
            self._out.rules.append(f"-A {chain} -j {target}")

    def _write_exceptions_of_the_local_policy(self, chain: str) -> None:
        """Send traffic of pods and of the node itself to all endpoints, as if it went out to a load balancer and back.

        Traffic of the node is masqueraded, because the kernel chooses the address of the load balancer as its source if
        the node has that address.
        """
        name, cluster, rules = self._name, self._chains.cluster, self._out.rules
        if pods := self._settings.pod_traffic.matches:
            comment = quoted(f"pod traffic for {name} external destinations")
            rules.append(f"-A {chain} {comment} {pods} -j {cluster}")
        own = "-m addrtype --src-type LOCAL"
        comment = quoted(f"masquerade LOCAL traffic for {name} external destinations")
        rules.append(f"-A {chain} {comment} {own} -j {chains.MARK_MASQUERADE}")
        comment = quoted(f"route LOCAL traffic for {name} external destinations")
        rules.append(f"-A {chain} {comment} {own} -j {cluster}")

    def _write_firewall_chain(self) -> None:
        """Let traffic from the source ranges through. Other packets keep their destination, and are dropped later.

        A request of the node itself to the load balancer does not leave the node, and has the load balancer's address
        as its source. It passes if the node is in a source range.
        """
        chain, external, ranges = self._chains.firewall, self._chains.external, self._port.source_ranges
        self._out.chains.append(chain)
        head = f"-A {chain} {quoted(f'{self._name} loadbalancer IP')}"
        sources = [str(network) for network in ranges]
        if any(self._settings.node_address in network for network in ranges):
            sources += self._port.load_balancer_ips
        self._out.rules += [f"{head} -s {source} -j {external}" for source in sources]
        comment = quoted(f"other traffic to {self._name} will be dropped by {chains.PROXY_FIREWALL}")
        self._out.rules.append(f"-A {chain} {comment}")

    def _write_policy_chain(self, chain: str, endpoints: Sequence[Endpoint]) -> None:
        """Choose an endpoint: the client's earlier one if it has to keep it, or else a random one."""
        self._out.chains.append(chain)
        targets = [
            (
                "" if self._settings.brief else f" {quoted(f'{self._name} -> {endpoint}')}",
                self._endpoint_chain(endpoint),
            )
            for endpoint in endpoints
        ]
        if (seconds := self._port.affinity_seconds) is not None:
            for comment, target in targets:
                recent = f"-m recent --name {target} --rcheck --seconds {seconds} --reap"
                self._out.rules.append(f"-A {chain}{comment} {recent} -j {target}")
        for left, (comment, target) in zip(range(len(targets), 0, -1), targets, strict=True):
            chance = f" -m statistic --mode random --probability {1 / left:.10f}" if left > 1 else ""
            self._out.rules.append(f"-A {chain}{comment}{chance} -j {target}")

    def _write_endpoint_chain(self, endpoint: Endpoint) -> None:
        chain = self._endpoint_chain(endpoint)
        self._out.chains.append(chain)
        head = f"-A {chain}" if self._settings.brief else f"-A {chain} -m comment --comment {self._name}"
        # An endpoint that reaches itself through the Service needs the node's address as the source.
        self._out.rules.append(f"{head} -s {endpoint.ip} -j {chains.MARK_MASQUERADE}")
        remember = "" if self._port.affinity_seconds is None else f" -m recent --name {chain} --set"
        self._out.rules.append(f"{head}{remember} {self._match} -j DNAT --to-destination {endpoint}")

    def _endpoint_chain(self, endpoint: Endpoint) -> str:
        return endpoint_chain(self._name, self._port.protocol, str(endpoint))
