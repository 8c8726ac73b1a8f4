"""The endpoint of this server in the Service `kubernetes`, as --endpoint-reconciler-type configures it."""

from __future__ import annotations

from tetrapod.apps.options.options import Options
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


def build_presence(options: Options, client: Client, backend: Backend, address: str) -> EndpointPresence | None:
    """Return the reconciler of this server's endpoint, or None if no other host could reach the server at `address`."""
    if not may_be_endpoint(address):
        return None
    endpoints = KubernetesEndpoints(client, options.serving.secure_port)
    reconciler: EndpointReconciler
    if options.endpoint.reconciler_type == "lease":
        reconciler = LeaseReconciler(endpoints, PeerLeases(backend, options.etcd.prefix), address)
    elif options.endpoint.reconciler_type == "master-count":
        reconciler = CountReconciler(endpoints, address, options.endpoint.apiserver_count)
    else:
        reconciler = NoReconciler()
    return EndpointPresence(reconciler)
