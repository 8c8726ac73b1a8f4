"""How a front door makes itself known, by flags: `--advertise-address`, `--external-hostname`, `--endpoint-reconciler-type` and so on."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from tetrapod.cli.options import EVERYWHERE, Options
from tetrapod.generic.client.interface import Client
from tetrapod.generic.frontdoor.leases import PeerLeases
from tetrapod.generic.frontdoor.objects import KubernetesEndpoints
from tetrapod.generic.frontdoor.presence import Presence, may_be_endpoint
from tetrapod.generic.frontdoor.reconcilers import CountReconciler, EndpointReconciler, LeaseReconciler, NoReconciler
from tetrapod.generic.storage.backend import Backend


def presence(options: Options, client: Client, backend: Backend, address: str) -> Presence | None:
    """None where nobody else could reach this server by its address."""
    if not may_be_endpoint(address):
        return None
    endpoints = KubernetesEndpoints(client, options.secure_port)
    reconciler: EndpointReconciler
    if options.endpoint_reconciler_type == "lease":
        reconciler = LeaseReconciler(endpoints, PeerLeases(backend, options.etcd_prefix), address)
    elif options.endpoint_reconciler_type == "master-count":
        reconciler = CountReconciler(endpoints, address, options.apiserver_count)
    else:
        reconciler = NoReconciler()
    return Presence(reconciler)


def reachable_address(options: Options) -> str:
    """Where others reach this server: as a flag says, or the address of the interface that leads outside.

    Upstream: DefaultAdvertiseAddress, ResolveBindAddress, which names that interface for a server on loopback too. Nobody could reach it
    there, so that ours is then known by loopback, and is no endpoint of `kubernetes`. And upstream refuses to start on `::` with IPv4
    services; ours, which IPv4 reaches there too, is known by an address of the services' family.
    """
    if options.advertise_address or options.bind_address not in EVERYWHERE:
        return options.local_address
    six = options.bind_address == "::" and ":" in options.service_cluster_ip_range.partition(",")[0]
    family, anywhere = (socket.AF_INET6, "2001:db8::1") if six else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((anywhere, 9))  # sends nothing: the kernel says which way it would go
        except OSError:
            return options.local_address
        return str(probe.getsockname()[0])


def external_address(options: Options) -> str:
    """host:port of the front door in documents for others, which `--external-hostname` may name, with or without a port.

    Where auth runs on its own that is the front as auth knows it. Upstream: completion of options (ExternalHost), Config.Complete
    (ExternalAddress).
    """
    front = urlsplit(options.aggregator_url[0]) if options.aggregator_url else None
    host = options.external_hostname or (front.hostname or "" if front is not None else reachable_address(options))
    if _names_port(host):
        return host
    port = options.secure_port if front is None else front.port or 443
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _names_port(host: str) -> bool:
    """As net.SplitHostPort would find: `name:1`, `[::1]:1`, and no bare IPv6 address."""
    name, separator, _ = host.rpartition(":")
    return bool(separator) and (":" not in name or (name.startswith("[") and name.endswith("]")))
