"""The base of all programs: a server process with its options, store, lifecycle and listener."""

from __future__ import annotations

import asyncio

from tetrapod.aggregator.delegation import groups
from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.admission import build_webhook_client
from tetrapod.apps.wiring.audit import build_audit
from tetrapod.apps.wiring.authentication_trust import check_request_headers
from tetrapod.apps.wiring.certificate_authorities import AuthorityFiles
from tetrapod.apps.wiring.egress import egress_selector
from tetrapod.apps.wiring.generic import check_generic
from tetrapod.apps.wiring.health_checks import add_certificate_check, add_storage_checks
from tetrapod.apps.wiring.http_server import FilterConfig, build_http_server
from tetrapod.apps.wiring.metrics import configure_metrics
from tetrapod.apps.wiring.storage import (
    build_encryption,
    cached_resources,
    check_early,
    check_stores,
    open_backend,
    open_overrides,
    storage_media_type,
)
from tetrapod.apps.wiring.storage_overrides import probe_of
from tetrapod.apps.wiring.tls import serving_tls
from tetrapod.apps.wiring.worker_metrics import build_worker_metrics
from tetrapod.generic.admission.interface import AdmissionChain
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.configuration import effective_version, feature_gates
from tetrapod.generic.filters.draining import Draining
from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.http.request import Handler
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.lifecycle import Check, Lifecycle
from tetrapod.generic.scheduling.config import FairScheduling
from tetrapod.generic.scheduling.offload import restore_collector
from tetrapod.generic.server.kubernetes_service.presence import EndpointPresence
from tetrapod.generic.server.resource_config import resource_config
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.server.storage_versions import StorageVersions
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory


class Program:
    """A server process. A subclass creates its services in its constructor, and calls `listen`.

    Attributes:
        egress: the proxies by way of which the server connects to others.
        resource_config: the built-in resources to serve.
        clients: the CAs of client certificates of users; set by the subclass.
        proxies: the CAs of front proxies; set by the subclass.
        http: the listener with the filter chain; set by `listen`.
        flow_control: API priority and fairness, in the process that users connect to; else None.
        presence: maintains the endpoint of the Service `kubernetes`, in the process that users connect to; else None.
        worker_metrics: the metrics of all workers; None for the only process of a server.
        storage_versions: the StorageVersions of this process, set by the subclass; None if they are not updated.
        linger: the seconds in which clients may close idle connections at shutdown.

    Args:
        options: the options.
        backend: the store; None for the one that the options name. It is closed with the server.
        behind_aggregator: whether requests arrive through the aggregator, which queues them and writes audit events.
            Rejections at shutdown then tell it that the request was not processed.

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

    def __init__(self, options: Options, backend: Backend | None = None, *, behind_aggregator: bool = False) -> None:
        check_generic(options.generic)
        configure_metrics(options.metrics)
        effective_version.configure(
            options.generic.emulated_version,
            options.generic.min_compatibility_version,
            forward_compatible=options.generic.emulation_forward_compatible,
            runtime_config_forward_compatible=options.generic.runtime_config_emulation_forward_compatible,
        )
        feature_gates.configure(options.generic.feature_gates)
        check_request_headers(options)
        flow_control = options.generic.enable_priority_and_fairness and not behind_aggregator
        self.resource_config = resource_config(options.api.runtime_config, flow_control=flow_control)
        groups.configure(self.resource_config)
        self.options = options
        self._flags = options.flags()
        self.lifecycle = Lifecycle(options.generic.livez_grace_period)
        self.draining = Draining(
            behind_aggregator=behind_aggregator,
            send_retry_after=options.generic.shutdown_send_retry_after,
            watch_grace_period=options.generic.shutdown_watch_termination_grace_period,
        )
        self.egress = egress_selector(options)
        self.audit = build_audit(options, self.lifecycle, self.egress)
        self.overrides = open_overrides(options.etcd, self.egress)
        self.backend = backend or open_backend(options, self.egress)
        self.encryption = build_encryption(options.etcd, self.lifecycle)
        scheduling = FairScheduling(enabled=options.tetrapod.fair_scheduling)
        self.storage = CachingStorageFactory(
            self.backend,
            options.etcd.root,
            self.encryption,
            scheduling,
            cached_resources(options.etcd),
            self.overrides.by_resource,
            storage_media_type(options.etcd),
        )
        self.webhooks = build_webhook_client(options, self.storage, self.lifecycle, self.egress)
        self.worker_metrics = build_worker_metrics(options)
        self.storage_versions: StorageVersions | None = None

    def plugin_dependencies(self, authorizer: Authorizer, client: Client) -> PluginDependencies:
        """Return the objects that admission plugins use. `client` is the server's own client."""
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
        """Return a new generic server for a service, without resources.

        Args:
            name: the name of the service.
            admission: the admission plugins.
            authorizer: the authorizer for checks inside endpoints.
            fallback: serves groups that are not installed; None to respond with 404.
        """
        server = GenericAPIServer(
            name,
            self.storage,
            admission,
            self.lifecycle,
            authorizer=authorizer,
            fallback=fallback,
            profiling=self.options.features.profiling,
            resource_config=self.resource_config,
        )
        server.flags = self._flags
        if self.worker_metrics is not None:
            from tetrapod.generic.server.worker_metrics import install_worker_metrics

            install_worker_metrics(server.routes, self.worker_metrics)
        return server

    def add_storage_checks(self) -> None:
        """Register the health checks of the stores, and the post-start hook that checks that they can be used."""
        add_storage_checks(
            self.lifecycle,
            self.options.etcd,
            probe_of(self.backend),
            [probe_of(store) for store in self.overrides.stores],
            lambda: check_stores(self.backend, self.overrides),
        )

    def add_certificate_check(self, pair: CertificatePair) -> None:
        """Register the health check that fails if the serving certificate has expired."""
        add_certificate_check(self.lifecycle, pair.certificate)

    def storage_probes(self) -> dict[str, Check]:
        """Return the probes of componentstatuses for the stores, by name."""
        return {"etcd-0": probe_of(self.backend), **self.overrides.component_probes()}

    def listen(
        self,
        director: Handler,
        authenticator: RequestAuthenticator,
        authorizer: Authorizer,
        pair: CertificatePair,
        *,
        name: str,
        service: str = "",
    ) -> None:
        """Set `http` to a listener that does not listen yet.

        Args:
            director: the handler behind the filters.
            authenticator: authenticates requests.
            authorizer: authorizes requests.
            pair: the serving certificate and its key.
            name: the name of the server in metrics and logs.
            service: "core", "extensions" or "auth" for a process behind the aggregator; "" for one that users connect
                to.
        """
        config = FilterConfig(
            authenticator=authenticator,
            authorizer=authorizer,
            draining=self.draining,
            audit=self.audit,
            flow_control=self.flow_control,
            server_name=name,
            service=service,
            egress=self.egress,
            storage_versions=self.storage_versions,
        )
        tls = serving_tls(self.options.serving, pair, [*self.clients.files, *self.proxies.files], self.clients.unnamed)
        self.http = build_http_server(director, self.options, config, tls, self.lifecycle)
        self.http.end_streams.append(self.draining.end_watches)

    async def start(self) -> None:
        """Listen, so that probes are answered, and run the post-start hooks. The server is ready when this returns.

        Raises:
            OSError: the address is not available.
            CannotOpen: the store cannot be used.
        """
        if self.encryption is not None:
            await self.encryption.start()
        await check_early(self.backend, self.overrides)
        if self.worker_metrics is not None:
            await self.worker_metrics.start()
        await self.http.start()
        self.clients.follow(self.lifecycle)
        self.proxies.follow(self.lifecycle)
        self.on_listening()
        await self.lifecycle.start()
        if self.presence is not None:
            worker = self.options.worker
            self.presence.start(self.lifecycle, lambda: worker is None or worker.source.server_stops)
        self.on_ready()

    def on_listening(self) -> None:
        """Start tasks that the post-start hooks need. Called when the server listens; does nothing by default."""

    def on_ready(self) -> None:
        """Start tasks that need a ready server.

        Called when the post-start hooks have finished; does nothing by default.
        """

    async def stop(self) -> None:
        """Shut down in upstream's order, and close the store.

        The server becomes unready, waits for --shutdown-delay-duration, rejects new requests, finishes those in flight,
        and runs the shutdown hooks. With --shutdown-send-retry-after, it closes the listener only after that.
        """
        flags = self.options.generic
        await self.lifecycle.leave(flags.shutdown_delay_duration)
        self.draining.begin()
        if flags.shutdown_send_retry_after:
            await asyncio.gather(self.draining.wait(flags.request_timeout), self.draining.end_watches())
        await self.http.stop(self.options.shutdown_grace, linger=self.linger)
        await self.lifecycle.stop()
        await self.close_connections()
        await self.storage.close()
        if self.encryption is not None:
            await self.encryption.close()
        await self.overrides.close()
        await self.backend.close()
        if self.worker_metrics is not None:
            await self.worker_metrics.stop()
        restore_collector()  # the server may be a part of another program, such as a test

    async def close_connections(self) -> None:
        """Close the connections to peer services. Do nothing by default."""
