"""`tetrapod up`: the four services in one process over one store, with its own certificates.

One filter chain is in front of all services. The aggregator calls the directors of the others, with the user as a typed
value.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tetrapod.aggregator.delegation.local import LocalDelegation
from tetrapod.aggregator.service import AggregatorService
from tetrapod.apps.options.options import Options
from tetrapod.apps.program import Program
from tetrapod.apps.wiring.addresses import check_families, kubernetes_service_address, reachable_address
from tetrapod.apps.wiring.aggregator_service import aggregator_config, build_presence, proxy_certificate
from tetrapod.apps.wiring.audit import audited
from tetrapod.apps.wiring.auth_service import auth_options
from tetrapod.apps.wiring.authentication_trust import authentication_data
from tetrapod.apps.wiring.certificate_authorities import AuthorityFiles
from tetrapod.apps.wiring.core_service import build_core_admission, core_config
from tetrapod.apps.wiring.flow_control import build_flow_control
from tetrapod.apps.wiring.health_checks import add_admission_checks
from tetrapod.apps.wiring.leader_election import build_leadership
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.apps.wiring.storage_versions import storage_versions
from tetrapod.auth.service import AuthService
from tetrapod.core.service import CoreService
from tetrapod.extensions.service import ExtensionsService
from tetrapod.generic.certificates.cert_dir import publish_serving
from tetrapod.generic.certificates.kubeconfig import kubeconfig, write_kubeconfig
from tetrapod.generic.certificates.pki import FRONT_PROXY_CLIENT, Pki, renew_leaves, write_pki
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.openapi.source import JoinedSource
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.storage.backend import Backend
from tetrapod.machinery.golang.ip_addresses import join_host_port

log = logging.getLogger(__name__)
RENEWAL_INTERVAL: Final = 12 * 3600.0
"""Seconds between the checks of certificates."""


class Embedded(Program):
    """The program of `tetrapod up`: all four services in one process. The constructor also writes the certificates.

    Args:
        options: the options.
        backend: the store; None for the one that the options name. It is closed with the server.
    """

    def __init__(self, options: Options, backend: Backend | None = None) -> None:
        request_header = options.authentication.request_header
        # only the front proxy has a certificate of our CA
        if not request_header.client_ca_file and not request_header.allowed_names:
            options = options.with_flags({"requestheader-allowed-names": (FRONT_PROXY_CLIENT,)})
        check_families(options)
        super().__init__(options, backend)
        self.address = reachable_address(options)
        self.pki = self._write_pki()
        self._pair = self._serving_pair()
        own = audited(self.director, self.audit)  # the server's own requests are audited too
        self.client = in_process_client(own, "kube-apiserver")
        self.controller_client = in_process_client(own, "kube-controller-manager")
        self._assemble()

    def _write_pki(self) -> Pki:
        options = self.options
        hosts = [
            "localhost",
            "127.0.0.1",
            "::1",
            socket.gethostname(),
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ]
        hosts += ["kubernetes.default.svc.cluster.local", kubernetes_service_address(options)]
        hosts += [options.local_address, self.address]
        return write_pki(options.pki, dict.fromkeys(hosts))

    def _assemble(self) -> None:
        options = self.options
        # Our own CA is always trusted, because it signed the certificate in the administrator's kubeconfig.
        given, own = options.authentication.client_ca_file, str(self.pki.client_ca)
        self.clients = AuthorityFiles("client-ca-file", given or own, unnamed=own if given else "")
        front_proxy_ca = options.authentication.request_header.client_ca_file or str(self.pki.front_proxy_ca)
        self.proxies = AuthorityFiles("requestheader-client-ca-file", front_proxy_ca)
        self.auth = AuthService(
            self.storage,
            auth_options(options, self.clients.pool, self.proxies.pool, reserve_services=True, egress=self.egress),
            self.controller_client,
            build_leadership(options, "auth", self.controller_client),
        )
        self.admission = build_core_admission(
            options.admission, self.plugin_dependencies(self.auth.authorizer, self.client)
        )
        self._assemble_auth_and_core()
        self._assemble_extensions()
        self._assemble_aggregator()
        self.listen(
            self.aggregator.director, self.auth.authenticator, self.auth.authorizer, self._pair, name="apiserver"
        )
        self.presence = build_presence(options, self.client, self.overrides.server_leases(self.backend), self.address)

    def _serving_pair(self) -> CertificatePair:
        """Return the serving certificate: that of the flags, else that in --cert-dir, else the server's own.

        Raises:
            OSError: the files in --cert-dir cannot be read or written.
        """
        flags = self.options.serving
        if flags.tls_cert_file or flags.tls_private_key_file or not flags.cert_dir:
            pair = self.pki.serving
        else:
            pair = publish_serving(self.pki, flags.cert_dir)
        return CertificatePair(flags.tls_cert_file or str(pair[0]), flags.tls_private_key_file or str(pair[1]))

    def _token_rest(self) -> Rest:
        rest = self.auth.token_request_rest
        if rest is None:
            raise ValueError("no service account signing key")
        return rest

    def _server(self, name: str, fallback: Handler | None = None) -> GenericAPIServer:
        return self.generic_server(name, self.admission, self.auth.authorizer, fallback)

    def _assemble_auth_and_core(self) -> None:
        options = self.options
        self.auth_server = self._server("auth")
        self.auth_server.install(self.auth.definitions)
        self.auth_server.documents.update(self.auth.documents)
        self.core_server = self._server("core")
        self.core = CoreService(
            self.core_server,
            core_config(
                options,
                address=self.address,
                ca=self.pki.ca.read_text("utf-8"),
                authentication=authentication_data(options.authentication.request_header, self.clients, self.proxies),
                egress=self.egress,
            ),
            client=self.client,
            controller_client=self.controller_client,
            token_rest=self._token_rest(),
            sign=self.auth.sign_secret_token,
            probes=self.storage_probes(),
            leadership=build_leadership(options, "core", self.controller_client),
        )

    def _assemble_extensions(self) -> None:
        self.extensions = ExtensionsService(
            self.storage, self.admission, self.lifecycle, self.client, self.webhooks, self.auth.authorizer
        )
        self.extensions_server = self._server("extensions", fallback=self.extensions.handler)
        self.extensions_server.install(self.extensions.definitions)

    def _assemble_aggregator(self) -> None:
        """Create the aggregator over core, extensions and auth, and register the hooks and health checks of all four.

        They are registered in the order of upstream's health checks.
        """
        options = self.options
        self.aggregator_server = self._server("aggregator")
        certificate = proxy_certificate(options, *map(str, self.pki.front_proxy_client))
        others = [self.core_server, self.auth_server, self.extensions_server]
        servers = [self.aggregator_server, *others]
        self.aggregator = AggregatorService(
            self.aggregator_server,
            aggregator_config(options, certificate, self.egress),
            self.client,
            local=self._local,
            sources=[*(server.source for server in servers), self.extensions.discovery],
        )
        self.delegation = LocalDelegation(self.aggregator_server, others, self.extensions.handler)
        for path, handler in self.auth.rest_routes.items():
            self.aggregator_server.routes.add_rest(path, handler)
        sources = [server.openapi() for server in servers]
        routes = self.aggregator_server.routes
        install_openapi(routes, JoinedSource([*sources, self.extensions.openapi, self.aggregator.external_openapi]))
        self.add_storage_checks()
        add_admission_checks(self.lifecycle, self.storage)
        self.add_certificate_check(self._pair)
        self.flow_control = build_flow_control(options, routes, self.client, self.lifecycle, self._statistics)
        self.extensions.register()
        self.core.register(self.lifecycle)
        self.auth.register(self.lifecycle)
        self.aggregator.register(self.lifecycle)
        self.storage_versions = storage_versions(self.resource_config, servers, self.client)
        if self.storage_versions is not None:
            self.storage_versions.follow(self.lifecycle)

    def _statistics(self, group: str, resource: str) -> tuple[int, int] | None:
        """Return the number of objects of a resource and their average size in bytes; None if no service knows them."""
        servers = (self.core_server, self.auth_server, self.extensions_server)
        return next((known for server in servers if (known := server.statistics(group, resource)) is not None), None)

    def _local(self, request: Request) -> Coroutine[Any, Any, Response]:
        return self.delegation.handle(request)

    async def director(self, request: Request) -> Response:
        """Pass a request to the aggregator.

        The filters call it after authentication and authorization, and the server's own clients call it directly.
        """
        return await self.aggregator.director(request)

    def on_ready(self) -> None:
        """Write the administrator's kubeconfig, and start the renewal of certificates.

        Do nothing in workers other than the first one.
        """
        if not self.options.first_worker:
            return
        self._write_kubeconfig()
        renewal = renew_periodically(lambda: renew_leaves(self.pki), self._renewed)
        self.lifecycle.background("certificate renewal", renewal)

    def _renewed(self) -> None:
        """Write the renewed certificates to the files that contain copies of them.

        These are the administrator's kubeconfig, and the serving certificate in --cert-dir if that flag is used.

        Raises:
            OSError: a file cannot be written.
        """
        self._write_kubeconfig()
        self._serving_pair()

    def _write_kubeconfig(self) -> None:
        certificate, key = self.pki.admin
        config = kubeconfig(
            self.url, ca=self.pki.ca.read_bytes(), certificate=certificate.read_bytes(), key=key.read_bytes()
        )
        write_kubeconfig(self.options.data_dir / "kubeconfig", config)

    @property
    def url(self) -> str:
        """The base URL at which clients on this host reach the server."""
        return f"https://{join_host_port(self.options.local_address, self.http.port)}"

    def describe(self) -> list[str]:
        """Return the lines that `tetrapod up` prints when the server is ready."""
        path = self.options.data_dir / "kubeconfig"
        store = ", ".join(self.options.etcd.servers) or str(self.options.database)
        return [
            f"Tetrapod is ready: {self.url} (data in {store})",
            f"  export KUBECONFIG={path.absolute()}",
            "  kubectl get namespaces",
        ]


async def renew_periodically(
    renew: Callable[[], bool], on_renewal: Callable[[], None], *, interval: float = RENEWAL_INTERVAL
) -> None:
    """Renew leaf certificates periodically until cancelled. Errors are logged.

    CAs are not renewed, because clients would not know the new ones. The listener and the aggregator read changed files
    themselves.

    Args:
        renew: renews certificates that expire soon. It is called in a thread, and returns whether it renewed any.
        on_renewal: called after a renewal.
        interval: seconds before each call of `renew`.
    """
    while True:
        await asyncio.sleep(interval)
        try:
            if await asyncio.to_thread(renew):
                on_renewal()
                log.info("certificates renewed")
        except (OSError, ValueError) as error:
            log.error("certificates not renewed: %s", error)
