"""The configuration of the aggregator, and its endpoint in the Service `kubernetes`."""

from __future__ import annotations

from tetrapod.aggregator.backends import ProxyCertificate
from tetrapod.aggregator.service import AggregatorConfig
from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.addresses import external_address
from tetrapod.generic.client.interface import Client
from tetrapod.generic.server.kubernetes_service.leases import PeerLeases
from tetrapod.generic.server.kubernetes_service.objects import KubernetesEndpoints
from tetrapod.generic.server.kubernetes_service.presence import EndpointPresence, may_be_endpoint
from tetrapod.generic.server.kubernetes_service.reconcilers import (
    CountReconciler,
    EndpointReconciler,
    LeaseReconciler,
    NoReconciler,
)
from tetrapod.generic.storage.backend import Backend


def proxy_certificate(options: Options, certificate: str, key: str) -> ProxyCertificate:
    """Return the client certificate for aggregated API servers: that of the flags, or else the given paths."""
    flags = options.aggregation
    return ProxyCertificate(flags.proxy_client_cert_file or certificate, flags.proxy_client_key_file or key)


def aggregator_config(options: Options, certificate: ProxyCertificate) -> AggregatorConfig:
    """Return the configuration of the aggregator.

    `certificate` is the client certificate for aggregated API servers.
    """
    return AggregatorConfig(
        enable_aggregator_routing=options.aggregation.enable_routing,
        proxy_certificate=certificate,
        reject_forwarding_redirect=options.aggregation.reject_forwarding_redirect,
        server_address=external_address(options),
    )


def build_presence(options: Options, client: Client, backend: Backend, address: str) -> EndpointPresence | None:
    """Return the object that maintains this server's endpoint of the Service `kubernetes`, as the flags configure.

    Args:
        options: the options.
        client: writes the Endpoints and EndpointSlice.
        backend: the store, for the leases of API servers.
        address: the address of this server.

    Returns:
        None if no other host could reach the server at `address`.
    """
    if not may_be_endpoint(address):
        return None
    endpoints = KubernetesEndpoints(client, options.serving.secure_port)
    reconciler: EndpointReconciler
    if options.endpoint.reconciler_type == "lease":
        reconciler = LeaseReconciler(endpoints, PeerLeases(backend, options.etcd.root), address)
    elif options.endpoint.reconciler_type == "master-count":
        reconciler = CountReconciler(endpoints, address, options.endpoint.apiserver_count)
    else:
        reconciler = NoReconciler()
    return EndpointPresence(reconciler)
