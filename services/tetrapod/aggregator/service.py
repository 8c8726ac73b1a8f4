"""The aggregator service: APIService records, request routing, merged discovery and OpenAPI, and their controllers.

The package `apps` passes a server in which the aggregator installs its own resource, the handler of all local services,
and their discovery sources. The aggregator does not import the other services.

Upstream: kube-aggregator/pkg/apiserver/apiserver.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tetrapod.aggregator.apiservice import APISERVICES, GROUP, group_version
from tetrapod.aggregator.autoregister import AutoRegistration
from tetrapod.aggregator.availability import AvailabilityController
from tetrapod.aggregator.backends import Backends, ProxyCertificate
from tetrapod.aggregator.crd_registration import CRDRegistration, declared_versions
from tetrapod.aggregator.discovery import MergedDiscovery
from tetrapod.aggregator.external_proxy import ExternalProxy
from tetrapod.aggregator.openapi import ExternalOpenAPI
from tetrapod.aggregator.peerproxy.discovery import PeerConfig, PeerDiscovery
from tetrapod.aggregator.peerproxy.exclusion import Exclusion
from tetrapod.aggregator.peerproxy.proxy import PeerProxy
from tetrapod.aggregator.priorities import priorities
from tetrapod.aggregator.registration.resources import definitions
from tetrapod.aggregator.routing import Records
from tetrapod.aggregator.service_informers import ClusterInformers
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.dialing import Dialer
from tetrapod.generic.discovery.handlers import DiscoveryHandlers, DiscoverySource
from tetrapod.generic.http.error_responses import not_found
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.lifecycle import Hook, Lifecycle
from tetrapod.generic.openapi.source import DocumentSource
from tetrapod.generic.proxy import BackendPool, ClientTLS
from tetrapod.generic.proxy.resolver import Resolver
from tetrapod.generic.proxy.tls import client_context
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.machinery.gvk import GroupVersion, GroupVersionResource, Object


@dataclass(frozen=True, slots=True)
class AggregatorConfig:
    """The configuration of the aggregator.

    Attributes:
        enable_aggregator_routing: whether to connect to endpoint addresses instead of cluster IPs.
        proxy_certificate: the client certificate for external API servers.
        reject_forwarding_redirect: whether redirects of external API servers are rejected.
        server_address: the host:port of the aggregator, for the response of `/api`; "" to use the Host header.
        peers: how to find and trust peer API servers; None to send them no requests.
        dialer: connects to external API servers by way of a proxy; None to connect directly.
        peer_dialer: the same for peer API servers.
    """

    enable_aggregator_routing: bool = False
    proxy_certificate: ProxyCertificate = field(default_factory=ProxyCertificate)
    reject_forwarding_redirect: bool = True
    server_address: str = ""
    peers: PeerConfig | None = None
    dialer: Dialer | None = None
    peer_dialer: Dialer | None = None


class AggregatorService:
    """The assembled aggregator.

    Args:
        server: the server of `apiregistration.k8s.io`, in which the resource is installed.
        config: the configuration.
        client: sends the requests of the aggregator's own controllers, through the aggregator.
        local: the handler of all requests that are not for an external API server; None for `server` alone.
        sources: the discovery sources of the local services, beginning with that of `server`.
    """

    def __init__(
        self,
        server: GenericAPIServer,
        config: AggregatorConfig,
        client: Client,
        *,
        local: Handler | None = None,
        sources: Sequence[DiscoverySource] = (),
    ) -> None:
        self.server = server
        self.records = Records()
        self.pool = BackendPool(dialer=config.dialer, http2_only=True)
        self._peer_pool = BackendPool(dialer=config.peer_dialer)
        self._local = local or server.director
        self._sources = sources or (server.source,)
        server.install(definitions(self.records.removed))
        server.listed.append(self._listed)
        self._cluster = ClusterInformers(client)
        self._certificate = config.proxy_certificate
        resolver = Resolver(self._cluster, by_endpoints=config.enable_aggregator_routing)
        self._backends = Backends(self.pool, resolver, config.proxy_certificate)
        self._proxy = ExternalProxy(self._backends, redirects=not config.reject_forwarding_redirect)
        self.discovery = MergedDiscovery(self.records, self._sources, self._backends)
        self.external_openapi: DocumentSource = ExternalOpenAPI(self.records, self._backends)
        self.registration = AutoRegistration(client, self.records)
        self._availability = AvailabilityController(client, self.records, self._cluster, self._backends)
        self._crds = CRDRegistration(client, self.registration)
        self._informer = Informer(client, APISERVICES)
        self._informer.handlers += [self._record_changed, self._availability.changed, self.registration.changed]
        self._cluster.on_change(self._availability.service_changed)
        self._peer_proxy = self._new_peer_proxy(config.peers, client) if config.peers is not None else None
        peers = self._peer_proxy.peers if self._peer_proxy is not None else None
        self._discovery_handlers = DiscoveryHandlers(self.discovery, GROUP.__eq__, config.server_address, peers)

    def _new_peer_proxy(self, config: PeerConfig, client: Client) -> PeerProxy:
        """Return the proxy to peers. Custom resources and external API servers are not taken from peers."""

        def shared() -> Iterator[GroupVersion]:
            yield from (GroupVersion(group, version) for group, version in self.records.external)
            for crd in self._crds.informer.objects.values():
                yield from declared_versions(crd)

        exclusion = Exclusion(shared)
        self.records.on_change(exclusion.changed)
        self._crds.informer.handlers.append(lambda _old, _new: exclusion.changed())
        return PeerProxy(PeerDiscovery(config, client, self._peer_pool, exclusion), self.discovery, self._peer_pool)

    # --- requests

    async def director(self, request: Request) -> Response:
        """Route a request to an external API server, to merged discovery or to a local service.

        The filters call it and return its response.
        """
        path = request.path
        # `GET *`, and paths such as //api, which must not bypass the authorization of /api
        if not path.startswith("/") or path.startswith("//"):
            return not_found()
        if path.startswith("/api"):
            info = request.info
            if info is not None and info.is_resource_request:
                if path.startswith("/apis//"):
                    return not_found()
                external = self.records.external.get((info.api_group, info.api_version))
                if external is not None:
                    return await self._proxy.handle(external, request)
                if self._peer_proxy is not None:
                    gvr = GroupVersionResource(info.api_group, info.api_version, info.resource)
                    if (response := await self._peer_proxy.handle(request, gvr)) is not None:
                        return response
                return await self._local(request)
            parts = path.split("/")
            if parts[1] == "apis":
                return await self._apis(request, parts)
            if path in ("/api", "/api/"):
                return await self._discovery_handlers.handle(request) or not_found()
        return await self._local(request)

    async def _apis(self, request: Request, parts: list[str]) -> Response:
        """Handle `/apis`, `/apis/GROUP`, and paths below a version that are not resources.

        The response is a discovery document for the first two. Paths below a version go to the API server of its
        APIService, or to the local services, which respond with 404 to unknown ones.

        Args:
            parts: the path, split at slashes; the first part is empty.
        """
        version = parts[3] if len(parts) > 3 else ""
        if version and not parts[2]:  # /apis//apps
            return not_found()
        if version:
            external = self.records.external.get((parts[2], version))
            return await (self._proxy.handle(external, request) if external is not None else self._local(request))
        if len(parts) > 4:
            return await self._local(request)
        # the group may have no APIServices any more
        return await self._discovery_handlers.handle(request) or await self._local(request)

    def _listed(self) -> Iterator[str]:
        """Yield the paths of all groups and versions that have an APIService, for the list of paths at `/`."""
        for obj in self.records.objects():
            group, version = group_version(obj)
            yield from (f"/apis/{group}", f"/apis/{group}/{version}") if group else ("/api", f"/api/{version}")

    # --- controllers

    def register(self, lifecycle: Lifecycle) -> None:
        """Register the post-start hooks that start the controllers, a health check, and hooks that close connections.

        The hooks have upstream's names and order. The check fails until the APIServices that were wanted at the start
        have been available.
        """
        lifecycle.paths_known.append(self._informer.synced)
        if self._peer_proxy is not None:
            self._peer_proxy.register(lifecycle)
        lifecycle.on_start("aggregator-reload-proxy-client-cert", self._load_certificate)
        lifecycle.on_start("start-kube-aggregator-informers", self._start_informers(lifecycle))
        lifecycle.on_start(
            "apiservice-status-local-available-controller",
            self._after_records(lifecycle, self._availability.start_local),
        )
        lifecycle.on_start("apiservice-status-remote-available-controller", self._start_remote(lifecycle))
        lifecycle.on_start("apiservice-registration-controller", self._routed)
        lifecycle.on_start("apiservice-discovery-controller", self._after_records(lifecycle, self.discovery.start))
        lifecycle.on_start("kube-apiserver-autoregistration", self._start_registration(lifecycle))
        lifecycle.add_boot_check("autoregister-completion", self.registration.check)
        # Documents are merged on request from the records. Nothing has to be started, so both hooks wait only for the
        # records.
        lifecycle.on_start("apiservice-openapi-controller", self._routed)
        lifecycle.on_start("apiservice-openapiv3-controller", self._routed)
        lifecycle.on_shutdown("aggregator-connections", self.pool.close)
        lifecycle.on_shutdown("peer-connections", self._peer_pool.close)

    def _record_changed(self, old: Object | None, new: Object | None) -> None:
        self.records.changed(old, new)
        if old is not None and new is None:
            self._backends.forget(old["metadata"]["name"])

    def _local_versions(self) -> list[GroupVersion]:
        versions = [GroupVersion("", version) for source in self._sources for version in source.core_versions()]
        for source in self._sources:
            versions += [
                GroupVersion(group["name"], v["version"]) for group in source.groups() for v in group["versions"]
            ]
        return [gv for gv in dict.fromkeys(versions) if gv.group != GROUP]

    async def _load_certificate(self) -> None:
        """Check that the front-proxy certificate can be loaded. It is read again for each new connection.

        Raises:
            OSError, ValueError: the certificate cannot be loaded.
        """
        certificate = self._certificate
        if certificate.certificate:
            await asyncio.to_thread(client_context, ClientTLS(certificate=certificate.certificate, key=certificate.key))

    def _start_informers(self, lifecycle: Lifecycle) -> Hook:
        async def start() -> None:
            lifecycle.follow("apiservices", self._informer)
            self._cluster.start(lifecycle)
            # Run in the background without being required: without the extensions service the aggregator still serves
            # all other groups.
            lifecycle.background("informer/customresourcedefinitions of apiservices", self._crds.informer.run())

        return start

    async def _routed(self) -> None:
        """Wait until the informer has the initial list of APIServices.

        Nothing is started, because routing and merged documents read the records on each request. The post-start hooks
        that call this exist upstream, where they start controllers.
        """
        await self._informer.synced.wait()

    def _after_records(self, lifecycle: Lifecycle, begin: Callable[[Lifecycle], None]) -> Hook:
        async def start() -> None:
            await self._informer.synced.wait()
            begin(lifecycle)

        return start

    def _start_remote(self, lifecycle: Lifecycle) -> Hook:
        async def start() -> None:
            await self._informer.synced.wait()
            await self._cluster.synced()
            self._availability.start_remote(lifecycle)

        return start

    def _start_registration(self, lifecycle: Lifecycle) -> Hook:
        """Return a post-start hook that starts the registration of APIServices.

        The hook completes once all built-in groups have an available APIService, because /apis is built from
        APIServices.
        """

        async def start() -> None:
            await self._informer.synced.wait()
            self.registration.remember_start({name for _, name in self._informer.objects})
            for gv in self._local_versions():
                gv_priorities = priorities(gv)
                if gv_priorities is not None:
                    self.registration.want(gv, gv_priorities, always=False)
            lifecycle.background("apiservice-registration", self.registration.queue.run(4))
            lifecycle.background("crd-registration-synced", self._crds_synced())
            await self.registration.completed()

        return start

    async def _crds_synced(self) -> None:
        await self._crds.informer.synced.wait()
        self.registration.complete()
