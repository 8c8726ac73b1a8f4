"""The configuration of the aggregator, and its endpoint in the Service `kubernetes`."""

from __future__ import annotations

import socket
from typing import Final

import click

from tetrapod.aggregator.backends import ProxyCertificate
from tetrapod.aggregator.peerproxy.discovery import PeerConfig
from tetrapod.aggregator.service import AggregatorConfig
from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.addresses import external_address
from tetrapod.apps.wiring.files import read_file
from tetrapod.apps.wiring.storage import storage_media_type
from tetrapod.generic.client.interface import Client
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.configuration.server_identity import identity_of
from tetrapod.generic.egress.selector import CLUSTER, CONTROL_PLANE, EgressSelector
from tetrapod.generic.proxy import ClientTLS
from tetrapod.generic.server.kubernetes_service.identity import SERVER
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
from tetrapod.machinery.error_aggregate import aggregate_errors

_PEERS: Final = "UnknownVersionInteroperabilityProxy"


def proxy_certificate(options: Options, certificate: str, key: str) -> ProxyCertificate:
    """Return the client certificate for aggregated API servers: that of the flags, or else the given paths."""
    flags = options.aggregation
    return ProxyCertificate(flags.proxy_client_cert_file or certificate, flags.proxy_client_key_file or key)


def aggregator_config(
    options: Options, certificate: ProxyCertificate, egress: EgressSelector, process_name: str = SERVER
) -> AggregatorConfig:
    """Return the configuration of the aggregator.

    Args:
        options: the options.
        certificate: the client certificate for aggregated API servers.
        egress: the egress selector.
        process_name: the name of the process in the name of its identity Lease.

    Raises:
        click.ClickException: a flag of peers is invalid.
    """
    return AggregatorConfig(
        enable_aggregator_routing=options.aggregation.enable_routing,
        proxy_certificate=certificate,
        reject_forwarding_redirect=options.aggregation.reject_forwarding_redirect,
        server_address=external_address(options),
        peers=_peer_config(options, certificate, process_name),
        dialer=egress.lookup(CLUSTER),
        peer_dialer=egress.lookup(CONTROL_PLANE),
    )


def _peer_config(options: Options, certificate: ProxyCertificate, process_name: str) -> PeerConfig | None:
    """Return how to find and trust peer API servers, or None without --peer-ca-file.

    Raises:
        click.ClickException: the file cannot be read, or a flag for peers is used while their feature gate is off.
    """
    flags = options.aggregation
    if not feature_gates.enabled(_PEERS):
        given = {
            "peer-ca-file": flags.peer_ca_file,
            "peer-advertise-ip": flags.peer_advertise_ip,
            "peer-advertise-port": flags.peer_advertise_port,
        }
        errors = [f"--{name} requires {_PEERS} feature to be turned on" for name, value in given.items() if value]
        if errors:
            raise click.ClickException(aggregate_errors(errors))
        return None
    if not flags.peer_ca_file:
        return None
    tls = ClientTLS(
        ca_data=read_file(flags.peer_ca_file, "peer-ca-file").decode(),
        certificate=certificate.certificate,
        key=certificate.key,
        server_name="kubernetes.default.svc",
    )
    return PeerConfig(identity_of(socket.gethostname(), process_name), tls)


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
        leases = PeerLeases(backend, options.etcd.root, storage_media_type(options.etcd))
        reconciler = LeaseReconciler(endpoints, leases, address)
    elif options.endpoint.reconciler_type == "master-count":
        reconciler = CountReconciler(endpoints, address, options.endpoint.apiserver_count)
    else:
        reconciler = NoReconciler()
    return EndpointPresence(reconciler)
