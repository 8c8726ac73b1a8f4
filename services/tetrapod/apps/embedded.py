"""`tetrapod up`: the four services in one process over one store, with their own certificates.

The aggregator calls the others' directors in process, with the identity passed as a typed value; one filter chain stands in
front of them all. The only place, with `remote.py`, where the four are put together.
"""

from __future__ import annotations

import logging
import socket
from pathlib import Path

from tetrapod.aggregator.backends import ProxyCertificate
from tetrapod.aggregator.delegation.local import Delegation
from tetrapod.aggregator.service import AggregatorConfig, AggregatorService
from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.addresses import external_address, presence, reachable_address
from tetrapod.apps.wiring.audit import audited, build_audit
from tetrapod.apps.wiring.auth_service import auth_options
from tetrapod.apps.wiring.authentication_trust import authentication_data
from tetrapod.apps.wiring.certificate_authorities import AuthorityFiles
from tetrapod.apps.wiring.certificate_renewal import renewing
from tetrapod.apps.wiring.core_admission import chosen_admission
from tetrapod.apps.wiring.encryption import encryption_of
from tetrapod.apps.wiring.flow_control import flow_control
from tetrapod.apps.wiring.health import add_admission_checks, add_certificate_check, add_storage_checks
from tetrapod.apps.wiring.kubelet import kubelet_config
from tetrapod.apps.wiring.leader_election import leadership
from tetrapod.apps.wiring.listener import Door, listener
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.apps.wiring.storage import check_backend, check_early, open_backend
from tetrapod.apps.wiring.tls import serving_tls
from tetrapod.apps.wiring.webhooks import webhook_client
from tetrapod.auth.service import AuthService
from tetrapod.core.service import CoreConfig, CoreService
from tetrapod.extensions.service import ExtensionsService
from tetrapod.generic.admission.surroundings import PluginDependencies
from tetrapod.generic.certificates.kubeconfig import kubeconfig, write_kubeconfig
from tetrapod.generic.certificates.pki import FRONT_PROXY_CLIENT, Pki, renew_leaves, write_pki
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.filters.draining import Draining
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.lifecycle.lifecycle import Lifecycle
from tetrapod.generic.openapi.source import JoinedSource
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.generic.scheduling.config import FairScheduling
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory

log = logging.getLogger(__name__)


class Embedded:
    """All services in one process."""

    def __init__(self, options: Options, backend: Backend | None = None) -> None:
        """`backend` is the store, where the caller has one; it is closed with the server."""
        request_header = options.authentication.request_header
        if not request_header.client_ca_file and not request_header.allowed_names:  # only the front proxy has a certificate of our CA
            options = options.with_flags({"requestheader-allowed-names": (FRONT_PROXY_CLIENT,)})
        self.options = options
        self.address = reachable_address(options)
        self.lifecycle = Lifecycle()
        self.draining = Draining()
        self.audit = build_audit(options.audit, self.lifecycle)
        self.pki = self._write_pki()
        self.backend = backend or open_backend(options)
        self.encryption = encryption_of(options, self.lifecycle)
        self.storage = CachingStorageFactory(
            self.backend, options.etcd.prefix, self.encryption, FairScheduling(enabled=options.tetrapod.fair_scheduling)
        )
        own = audited(self.director, self.audit)  # what the server itself does is audited too
        self.client = in_process_client(own, "kube-apiserver")
        self.controller_client = in_process_client(own, "kube-controller-manager")
        self._assemble()

    def _write_pki(self) -> Pki:
        options = self.options
        hosts = ["localhost", "127.0.0.1", "::1", socket.gethostname(), "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        hosts += ["kubernetes.default.svc.cluster.local", _first_address(options.workloads.service_cluster_ip_range)]
        hosts += [options.local_address, self.address]
        return write_pki(options.pki, dict.fromkeys(hosts))

    def _assemble(self) -> None:
        options = self.options
        # Whatever else is believed: our own CA signed the certificate in the administrator's kubeconfig.
        given = [options.authentication.client_ca_file] if options.authentication.client_ca_file else []
        self.clients = AuthorityFiles("client-ca-file", str(self.pki.client_ca), *given)
        front_proxy_ca = options.authentication.request_header.client_ca_file or str(self.pki.front_proxy_ca)
        self.proxies = AuthorityFiles("requestheader-client-ca-file", front_proxy_ca)
        self.auth = AuthService(
            self.storage,
            auth_options(options, self.clients.pool, self.proxies.pool, reserve_services=True),
            self.controller_client,
            leadership(options, "auth", self.controller_client),
        )
        self.webhooks = webhook_client(options, self.storage, self.lifecycle)
        dependencies = PluginDependencies(
            self.storage,
            self.auth.authorizer,
            self.client,
            self.lifecycle.background,
            self.webhooks,
            options.tetrapod.break_glass,
            (options.admission.default_not_ready_toleration_seconds, options.admission.default_unreachable_toleration_seconds),
        )
        self.admission = chosen_admission(dependencies, options)
        self._assemble_core()
        self._assemble_extensions()
        self._assemble_front()
        door = Door(self.auth.authenticator, self.auth.authorizer, self.draining, self.audit, self.flow_control, "apiserver")
        tls = serving_tls(options.serving, self._serving_pair(), [*self.clients.files, *self.proxies.files])
        self.http = listener(self.aggregator.director, options, door, tls, self.lifecycle)

    def _serving_pair(self) -> CertificatePair:
        """Return the files of the serving certificate: those of flags, else those in --cert-dir, else our own."""
        options = self.options
        pair = Path(options.serving.cert_dir, "apiserver.crt"), Path(options.serving.cert_dir, "apiserver.key")
        if not (options.serving.cert_dir and all(file.is_file() for file in pair)):
            pair = self.pki.serving
        return CertificatePair(options.serving.tls_cert_file or str(pair[0]), options.serving.tls_private_key_file or str(pair[1]))

    def _token_rest(self) -> Rest:
        found = self.auth.token_request_rest
        if found is None:
            raise ValueError("no service account signing key")
        return found

    def _server(self, name: str, fallback: Handler | None = None) -> GenericAPIServer:
        return GenericAPIServer(
            name,
            self.storage,
            self.admission,
            self.lifecycle,
            authorizer=self.auth.authorizer,
            fallback=fallback,
            profiling=self.options.features.profiling,
        )

    def _assemble_core(self) -> None:
        options = self.options
        self.auth_server = self._server("auth")
        self.auth_server.install(self.auth.definitions)
        self.auth_server.documents.update(self.auth.documents)
        self.core_server = self._server("core")
        self.core = CoreService(
            self.core_server,
            CoreConfig(
                options.workloads.service_cluster_ip_range,
                options.workloads.service_node_port_range,
                self.address,
                options.serving.secure_port,
                self.pki.ca.read_text(),
                authentication_data(options.authentication.request_header, self.clients, self.proxies),
                options.tetrapod.controllers,
                kubelet_config(options.kubelet),
                options.tetrapod.collection_delay,
                event_ttl=options.workloads.event_ttl,
                allow_privileged=options.workloads.allow_privileged,
            ),
            self.client,
            self.controller_client,
            self._token_rest(),
            self.auth.sign_secret_token,
            {"etcd-0": self._probe_storage},
            leadership(options, "core", self.controller_client),
        )

    def _assemble_extensions(self) -> None:
        self.extensions = ExtensionsService(self.storage, self.admission, self.lifecycle, self.client, self.webhooks, self.auth.authorizer)
        self.extensions_server = self._server("extensions", fallback=self.extensions.handler)
        self.extensions_server.install(self.extensions.definitions)

    def _assemble_front(self) -> None:
        """Create the aggregator over the other services. Hooks are registered in the order of the health checks."""
        options = self.options
        self.front = self._server("aggregator")
        self.front.flags = options.flags()
        certificate, key = self.pki.front_proxy_client
        config = AggregatorConfig(
            options.aggregation.enable_routing,
            ProxyCertificate(
                options.aggregation.proxy_client_cert_file or str(certificate), options.aggregation.proxy_client_key_file or str(key)
            ),
            options.aggregation.reject_forwarding_redirect,
            external_address(options),
        )
        servers = [self.core_server, self.auth_server, self.extensions_server]
        self.aggregator = AggregatorService(
            self.front,
            config,
            self.client,
            local=self._local,
            sources=[*(s.source for s in (self.front, *servers)), self.extensions.discovery],
        )
        self.delegation = Delegation(self.front, servers, self.extensions.handler)
        for path, handler in self.auth.rest_routes.items():
            self.front.routes.add_rest(path, handler)
        sources = [s.openapi() for s in (self.front, *servers)]
        install_openapi(self.front.routes, JoinedSource([*sources, self.extensions.openapi, self.aggregator.external_openapi]))
        add_storage_checks(self.lifecycle, options, self._probe_storage, lambda: check_backend(self.backend, options.etcd.prefix))
        add_admission_checks(self.lifecycle, self.storage)
        add_certificate_check(self.lifecycle, self._serving_pair().certificate)
        self.flow_control = flow_control(options, self.front.routes, self.client, self.lifecycle, self._statistics)
        self.extensions.register()
        self.core.register(self.lifecycle)
        self.auth.register(self.lifecycle)
        self.aggregator.register(self.lifecycle)

    def _statistics(self, group: str, resource: str) -> tuple[int, int] | None:
        found = (s.statistics(group, resource) for s in (self.core_server, self.auth_server, self.extensions_server))
        return next((f for f in found if f is not None), None)

    async def _local(self, request: Request) -> Response:
        return await self.delegation.handle(request)

    async def director(self, request: Request) -> Response:
        return await self.aggregator.director(request)

    async def _probe_storage(self) -> None:
        await self.backend.revision()

    async def start(self) -> None:
        """Listen first, so that probes are answered while the hooks run; ready when they are done."""
        if self.encryption is not None:
            await self.encryption.start()
        await check_early(self.backend, self.options.etcd.prefix)
        await self.http.start()
        self.clients.follow(self.lifecycle)
        self.proxies.follow(self.lifecycle)
        await self.lifecycle.start()
        if (known := presence(self.options, self.client, self.backend, self.address)) is not None:
            known.start(self.lifecycle)
        self._write_kubeconfig()
        self.lifecycle.background("certificate renewal", renewing(lambda: renew_leaves(self.pki), self._write_kubeconfig))

    def _write_kubeconfig(self) -> None:
        certificate, key = self.pki.admin
        config = kubeconfig(self.url, ca=self.pki.ca.read_bytes(), certificate=certificate.read_bytes(), key=key.read_bytes())
        write_kubeconfig(self.options.data_dir / "kubeconfig", config)

    @property
    def url(self) -> str:
        host = self.options.local_address
        return f"https://{f'[{host}]' if ':' in host else host}:{self.http.port}"

    def describe(self) -> list[str]:
        path = self.options.data_dir / "kubeconfig"
        store = ", ".join(self.options.etcd.servers) or str(self.options.database)
        return [
            f"Tetrapod is ready: {self.url} (data in {store})",
            f"  export KUBECONFIG={path.absolute()}",
            "  kubectl get namespaces",
        ]

    async def stop(self) -> None:
        """Not ready, wait, stop accepting, drain, pre-shutdown hooks, close the store."""
        await self.lifecycle.leave(self.options.generic.shutdown_delay_duration)
        self.draining.begin()
        await self.http.stop(self.options.shutdown_grace)
        await self.lifecycle.stop()
        await self.storage.close()
        if self.encryption is not None:
            await self.encryption.close()
        await self.backend.close()


def _first_address(network: str) -> str:
    import ipaddress

    return str(ipaddress.ip_network(network, strict=False).network_address + 1)
