"""The base of all programs: a server with its options, store, lifecycle and listener."""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.admission import build_webhook_client
from tetrapod.apps.wiring.audit import build_audit
from tetrapod.apps.wiring.certificate_authorities import AuthorityFiles
from tetrapod.apps.wiring.health_checks import add_certificate_check, add_storage_checks
from tetrapod.apps.wiring.http_server import FilterConfig, build_http_server
from tetrapod.apps.wiring.storage import build_encryption, check_backend, check_early, open_backend
from tetrapod.apps.wiring.tls import serving_tls
from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.filters.draining import Draining
from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.http.request import Handler
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.scheduling.config import FairScheduling
from tetrapod.generic.scheduling.offload import restore_collector
from tetrapod.generic.server.kubernetes_service.presence import EndpointPresence
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory


class Program:
    """A server. A subclass assembles its services in its constructor and sets the attributes without a value here.

    Attributes:
        clients: the CAs of client certificates.
        proxies: the CAs of front proxies.
        http: the listener with the filter chain.
        flow_control: priority and fairness, in the server of clients.
        presence: the endpoint of the Service `kubernetes`, in the server of clients.
        linger: seconds for clients to close idle connections at shutdown.

    Args:
        backend: the store, by default the one that the options name. It is closed with the server.
        notify_aggregator: whether responses tell the aggregator that this server shuts down.

    Raises:
        CannotOpen, ValueError, click.ClickException: an option is invalid, or names a file or store that cannot be
            used.
    """

    clients: AuthorityFiles
    proxies: AuthorityFiles
    http: HttpServer
    flow_control: FlowControl | None = None
    presence: EndpointPresence | None = None
    linger = 0.0

    def __init__(self, options: Options, backend: Backend | None = None, *, notify_aggregator: bool = False) -> None:
        self.options = options
        self._flags = options.flags()
        self.lifecycle = Lifecycle()
        self.draining = Draining(notify_aggregator=notify_aggregator)
        self.audit = build_audit(options.audit, self.lifecycle)
        self.backend = backend or open_backend(options)
        self.encryption = build_encryption(options.etcd, self.lifecycle)
        scheduling = FairScheduling(enabled=options.tetrapod.fair_scheduling)
        self.storage = CachingStorageFactory(self.backend, options.etcd.prefix, self.encryption, scheduling)
        self.webhooks = build_webhook_client(options, self.storage, self.lifecycle)

    def plugin_dependencies(self, authorizer: Authorizer, client: Client) -> PluginDependencies:
        """Return the dependencies of admission plugins.

        Args:
            client: the server's own client.
        """
        flags = self.options.admission
        return PluginDependencies(
            storages=self.storage,
            authorizer=authorizer,
            client=client,
            background=self.lifecycle.background,
            webhooks=self.webhooks,
            break_glass=self.options.tetrapod.break_glass,
            toleration_seconds=(
                flags.default_not_ready_toleration_seconds,
                flags.default_unreachable_toleration_seconds,
            ),
        )

    def generic_server(
        self, name: str, admission: AdmissionChain, authorizer: Authorizer, fallback: Handler | None = None
    ) -> GenericAPIServer:
        """Return the generic server of a service, without resources."""
        server = GenericAPIServer(
            name,
            self.storage,
            admission,
            self.lifecycle,
            authorizer=authorizer,
            fallback=fallback,
            profiling=self.options.features.profiling,
        )
        server.flags = self._flags
        return server

    def add_storage_checks(self) -> None:
        """Add the health checks of the store."""
        root = self.options.etcd.prefix
        add_storage_checks(
            self.lifecycle, self.options.etcd, self.probe_storage, lambda: check_backend(self.backend, root)
        )

    def add_certificate_check(self, pair: CertificatePair) -> None:
        """Add the health check of the serving certificate."""
        add_certificate_check(self.lifecycle, pair.certificate)

    async def probe_storage(self) -> None:
        """Send a request to the store, raising its error."""
        await self.backend.revision()

    def listen(
        self,
        director: Handler,
        authenticator: RequestAuthenticator,
        authorizer: Authorizer,
        pair: CertificatePair,
        client_cas: Sequence[str],
        *,
        name: str,
        service: str = "",
    ) -> None:
        """Set `http` to the server of this process.

        Args:
            director: the handler behind the filters.
            pair: the serving certificate and its key.
            client_cas: files of CAs, which the server names to clients that may present a certificate.
            name: the name of the server in metrics and logs.
            service: the name of a service behind the aggregator.
        """
        config = FilterConfig(
            authenticator=authenticator,
            authorizer=authorizer,
            draining=self.draining,
            audit=self.audit,
            flow_control=self.flow_control,
            server_name=name,
            service=service,
        )
        tls = serving_tls(self.options.serving, pair, client_cas)
        self.http = build_http_server(director, self.options, config, tls, self.lifecycle)

    async def start(self) -> None:
        """Listen, so that probes are answered, and run the start hooks. The server is ready when this returns."""
        if self.encryption is not None:
            await self.encryption.start()
        await check_early(self.backend, self.options.etcd.prefix)
        await self.http.start()
        self.clients.follow(self.lifecycle)
        self.proxies.follow(self.lifecycle)
        self.on_listening()
        await self.lifecycle.start()
        if self.presence is not None:
            self.presence.start(self.lifecycle)
        self.on_ready()

    def on_listening(self) -> None:
        """Start what the start hooks need. Called when the server listens."""

    def on_ready(self) -> None:
        """Start what needs a ready server. Called when the start hooks have finished."""

    async def stop(self) -> None:
        """Shut down as upstream: unready, wait, stop accepting, drain, run pre-shutdown hooks, close the store."""
        await self.lifecycle.leave(self.options.generic.shutdown_delay_duration)
        self.draining.begin()
        await self.http.stop(self.options.shutdown_grace, linger=self.linger)
        await self.lifecycle.stop()
        await self.close_connections()
        await self.storage.close()
        if self.encryption is not None:
            await self.encryption.close()
        await self.backend.close()
        restore_collector()  # the server may be a part of another program, such as a test

    async def close_connections(self) -> None:
        """Close connections to other services."""
