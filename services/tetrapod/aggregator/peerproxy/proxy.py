"""`PeerProxy`: forwards requests for resources that this server does not serve to a peer that does.

Upstream: staging/src/k8s.io/apiserver/pkg/util/peerproxy/peerproxy_handler.go.
"""

from __future__ import annotations

import random
from typing import Final

from tetrapod.aggregator.external_proxy import forward_request
from tetrapod.aggregator.peerproxy.discovery import PROXIED, REROUTED, PeerDiscovery
from tetrapod.generic.discovery.handlers import DiscoverySource
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.proxy import BackendPool
from tetrapod.machinery.gvk import GroupVersionResource
from tetrapod.machinery.status import StatusError, service_unavailable

_ERRORS: Final = Counter(
    "apiserver_peer_proxy_errors_total",
    "Total number of errors encountered while proxying requests to a peer kube apiserver",
    ("type", "group", "version", "resource"),
)


class PeerProxy:
    """The proxy to peers, for resources that are not in the discovery documents of this server.

    Args:
        peers: the resources of peers.
        local: the resources of this server, with those of external API servers.
        pool: the connections.
    """

    def __init__(self, peers: PeerDiscovery, local: DiscoverySource, pool: BackendPool) -> None:
        self.peers = peers
        self._local = local
        self._pool = pool
        self._served: tuple[int, frozenset[GroupVersionResource]] = (-1, frozenset())

    async def handle(self, request: Request, gvr: GroupVersionResource) -> Response | None:
        """Forward a request for a resource to a peer, if only peers serve it, and return the peer's response.

        Args:
            request: the request.
            gvr: its resource.

        Returns:
            The response, or None if this server must handle the request.

        Raises:
            StatusError: 503 if no peer that serves the resource has an address.
        """
        if self.peers.excludes(gvr):  # first, because every change of a custom resource's version changes _resources()
            return None
        if gvr in self._resources() or request.header(PROXIED[0][0]) == "true" or not self.peers.leases.synced.is_set():
            return None
        servers = self.peers.serving(gvr)
        if not servers:
            return None
        endpoints = {server: endpoint for server in servers if (endpoint := self.peers.endpoint(server)) is not None}
        if not endpoints:
            _ERRORS.add(("endpoint_resolution", *gvr))
            raise _no_address()
        endpoint = endpoints[random.choice(self.peers.live(list(endpoints)))]
        response = await forward_request(self._pool, endpoint, request, request.user, redirects=True, added=PROXIED)
        REROUTED.add((str(response.status), *gvr))
        return response

    def register(self, lifecycle: Lifecycle) -> None:
        """Register the post-start hooks that follow the identity Leases of peers and fetch their discovery documents.

        The hooks have upstream's names.
        """

        async def start() -> None:
            lifecycle.follow("identity leases of peers", self.peers.leases)
            lifecycle.background("peer-discovery-cache-sync", self.peers.queue.run())

        async def local() -> None:
            """Do nothing: the documents of this server are read on each request."""

        async def ready() -> None:
            await self.peers.leases.synced.wait()

        lifecycle.on_start("mixed-version-proxy-handler", ready)
        lifecycle.on_start("local-discovery-cache-sync", local)
        lifecycle.on_start("peer-discovery-workers", start)

    def _resources(self) -> frozenset[GroupVersionResource]:
        generation = self._local.generation
        if self._served[0] != generation:
            served = frozenset(
                GroupVersionResource(item["metadata"].get("name", ""), version["version"], resource["resource"])
                for core in (True, False)
                for item in self._local.aggregated(core)
                for version in item["versions"]
                for resource in version.get("resources") or ()
            )
            self._served = (generation, served)
        return self._served[1]


def _no_address() -> StatusError:
    return service_unavailable("Error getting ip and port info of the remote server while proxying")
