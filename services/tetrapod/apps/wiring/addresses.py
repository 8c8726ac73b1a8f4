"""The addresses at which clients reach this server, from the flags and the network interfaces."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from tetrapod.apps.options.options import UNSPECIFIED, Options
from tetrapod.core.allocators.networks import Network
from tetrapod.core.allocators.service_ranges import first_address, service_ranges
from tetrapod.generic.server.kubernetes_service.presence import may_be_endpoint
from tetrapod.machinery.addresses import is_ipv4
from tetrapod.machinery.golang.ip_addresses import join_host_port


def reachable_address(options: Options) -> str:
    """Return the IP address at which other hosts reach this server.

    It is --advertise-address, else --bind-address unless that is unspecified, else the address of the interface with
    the default route. Upstream (DefaultAdvertiseAddress, ResolveBindAddress) uses that interface also if the server
    listens on loopback only. Nothing could reach it there, so this server then uses the loopback address and is not an
    endpoint of `kubernetes`. Upstream does not start on `::` with IPv4 services; here IPv4 clients can connect too, and
    the address has the family of the services.
    """
    if options.serving.advertise_address or options.serving.bind_address not in UNSPECIFIED:
        return options.local_address
    six = options.serving.bind_address == "::" and _primary_range(options).version == 6
    family, anywhere = (socket.AF_INET6, "2001:db8::1") if six else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((anywhere, 9))  # sends nothing: the kernel selects the source address of the route
        except OSError:
            return options.local_address
        return str(probe.getsockname()[0])


def peer_address(options: Options) -> str:
    """Return the host:port at which peer API servers reach this one: that of the flags, or that of the server."""
    flags = options.aggregation
    if flags.peer_advertise_ip and flags.peer_advertise_port:
        return join_host_port(flags.peer_advertise_ip, flags.peer_advertise_port)
    return join_host_port(reachable_address(options), options.serving.secure_port)


def kubernetes_service_address(options: Options) -> str:
    """Return the cluster IP of the Service `kubernetes`, which has the IP family of the primary service network.

    Raises:
        ValueError: --service-cluster-ip-range is invalid.
    """
    return first_address(_primary_range(options))


def check_families(options: Options) -> None:
    """Check that the endpoint of the Service `kubernetes` would have the same IP family as its cluster IP.

    Upstream: cmd/kube-apiserver/app/options/validation.go, validatePublicIPServiceClusterIPRangeIPFamilies

    Raises:
        ValueError: the families differ, or --service-cluster-ip-range is invalid. The text is upstream's.
    """
    network, address = _primary_range(options), reachable_address(options)
    is_endpoint = bool(options.serving.advertise_address) or may_be_endpoint(address)
    if options.endpoint.reconciler_type == "none" or not is_endpoint:
        return
    if is_ipv4(address) != (network.version == 4):
        raise ValueError(f'service IP family "{network}" must match public address family "{address}"')


def _primary_range(options: Options) -> Network:
    return service_ranges(options.workloads.service_cluster_ip_range)[0]


def external_address(options: Options) -> str:
    """Return the host:port of this server for documents that clients read, such as the OpenID configuration.

    --external-hostname may set the host, with or without a port. If the auth service is a process of its own, it is the
    address of the aggregator from auth's flags.
    Upstream: completion of options (ExternalHost); Config.Complete (ExternalAddress)

    Raises:
        ValueError: auth reaches the aggregator by a Unix socket, and --external-hostname names no port.
    """
    front = urlsplit(options.peers.aggregator_url[0]) if options.peers.aggregator_url else None
    host = options.generic.external_hostname or (
        front.hostname or "" if front is not None else reachable_address(options)
    )
    if _names_port(host):
        return host
    if front is not None and front.scheme == "unix":
        raise ValueError("--external-hostname HOST:PORT is needed if --aggregator-url is a Unix socket")
    port = options.serving.secure_port if front is None else front.port or 443
    return join_host_port(host, port)


def _names_port(host: str) -> bool:
    """Return whether a host includes a port, as net.SplitHostPort decides.

    `name:1` and `[::1]:1` include one; a bare IPv6 address does not.
    """
    name, separator, _ = host.rpartition(":")
    return bool(separator) and (":" not in name or (name.startswith("[") and name.endswith("]")))
