"""`tetrapod serve SERVICE`: one of the four services as a process of its own, over etcd.

It reaches the others over mTLS. The services accept the identity headers of the aggregator, let auth review tokens and
resolve RBAC rules, and send the requests of their controllers to the aggregator.
"""

from __future__ import annotations

import importlib
import socket
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import click
from cryptography import x509

from tetrapod.apps.options.options import Options
from tetrapod.apps.program import Program
from tetrapod.apps.wiring.addresses import peer_address
from tetrapod.apps.wiring.certificate_authorities import AuthorityFiles
from tetrapod.apps.wiring.delegated_auth import delegated_authenticator, delegated_authorizer
from tetrapod.apps.wiring.files import read_file
from tetrapod.apps.wiring.health_checks import add_admission_checks
from tetrapod.apps.wiring.storage_versions import storage_versions
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authentication.shared_cache import SharedCache
from tetrapod.generic.authentication.x509 import user_of
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.http import http_client
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.rest import RestClient
from tetrapod.generic.http.request import Handler
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.http.unix_sockets import is_supported
from tetrapod.generic.proxy.balanced_pool import BalancedPool
from tetrapod.generic.proxy.endpoint import is_socket, unix_url
from tetrapod.generic.proxy.exchange import BackendError
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.generic.server.kubernetes_service.identity import IdentityLease
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.machinery.user import UserInfo

LINGER: Final = 5.0
"""Seconds for the aggregator to learn, from a probe or a response, that this replica stops, and to close its
connections itself.
"""


class Assembled(NamedTuple):
    """The parts of an assembled service that its HTTP server needs.

    Attributes:
        director: the handler behind the filters.
        authenticator: authenticates the requests.
        authorizer: authorizes the requests.
        server: the server with the resources of the service.
        client: the service's own client, of all services.
    """

    director: Handler
    authenticator: RequestAuthenticator
    authorizer: Authorizer
    server: GenericAPIServer
    client: Client


class SeparateService(Program):
    """A service as a process of its own. A subclass has a `name` and defines `assemble`.

    Attributes:
        identity: the identity Lease of this process; None if it has none.
        own_tls: the TLS configuration for requests to peer services, with this service's client certificate.
        ca: the CA of serving certificates, as PEM.

    Raises:
        click.UsageError: --etcd-servers or the URL of another service is missing.
    """

    name = ""
    linger = LINGER
    identity: IdentityLease | None = None

    def __init__(self, options: Options) -> None:
        if not options.etcd.servers:
            raise click.UsageError("--etcd-servers is needed: services that run as separate processes share an etcd")
        super().__init__(options, behind_aggregator=self.name != "aggregator")
        self.pool = BalancedPool()
        client_ca = self.file("client-ca.crt", options.authentication.client_ca_file)
        front_proxy_ca = self.file("front-proxy-ca.crt", options.authentication.request_header.client_ca_file)
        self.clients = AuthorityFiles("client-ca-file", client_ca)
        self.proxies = AuthorityFiles("requestheader-client-ca-file", front_proxy_ca)
        self.ca = read_file(self.file("ca.crt"), "data-dir").decode()
        self.own_tls = ClientTLS(ca_data=self.ca, certificate=self.file("client.crt"), key=self.file("client.key"))
        pair = CertificatePair(
            self.file("tls.crt", options.serving.tls_cert_file),
            self.file("tls.key", options.serving.tls_private_key_file),
        )
        self.add_storage_checks()
        if self.name != "aggregator":  # it creates no objects in namespaces
            add_admission_checks(self.lifecycle, self.storage)
        self.add_certificate_check(pair)
        assembled = self.assemble()
        self.storage_versions = storage_versions(self.resource_config, [assembled.server], assembled.client, self.title)
        if self.storage_versions is not None and self.name == "core":
            self.storage_versions.follow(self.lifecycle)
        service = "" if self.name == "aggregator" else self.name
        self.listen(
            assembled.director, assembled.authenticator, assembled.authorizer, pair, name=self.name, service=service
        )

    def assemble(self) -> Assembled:
        """Create the service, register its hooks, and return its handler, authenticator and authorizer.

        The constructor calls it.
        """
        raise NotImplementedError

    def file(self, name: str, given: str = "") -> str:
        """Return the path of a file: `given`, the value of a flag, or, if it is "", `name` in the data directory."""
        return given or str(Path(self.options.data_dir) / name)

    @property
    def title(self) -> str:
        """The name of this process, `SERVICE:PORT`, which is unique on its host."""
        return f"{self.name}:{self.options.serving.secure_port}"

    def client_of(self, urls: Sequence[str], name: str, user_agent: str) -> RestClient:
        """Return a client of another service, whose requests are distributed over its ready replicas.

        Args:
            urls: the URLs of the replicas.
            name: the name of the service, and the beginning of its flag.
            user_agent: the User-Agent header.

        Raises:
            click.UsageError: the flag with the URLs is missing, or a URL is invalid.
        """
        url = self.balance(urls, name)
        return http_client(self.pool, url, self.own_tls, user_agent, user=self.own_user if is_socket(url) else None)

    @cached_property
    def own_user(self) -> UserInfo:
        """The user of the client certificate for requests to peer services.

        Over a Unix socket, identity headers name it.

        Raises:
            CannotOpen: the certificate cannot be read.
        """
        pem = read_file(self.own_tls.certificate, "data-dir")
        return user_of(x509.load_pem_x509_certificate(pem))

    def balance(self, urls: Sequence[str], name: str) -> str:
        """Register `urls` as the replicas of the service `name`.

        Requests to the first URL are then distributed over all of them.

        A Unix socket (`unix:///PATH`) is the only replica.

        Returns:
            The base URL for requests to the service.

        Raises:
            click.UsageError: the flag with the URLs is missing, or a URL is invalid.
        """
        if not urls:
            raise click.UsageError(f"--{name}-url is needed to serve {self.name} on its own")
        if any(is_socket(url) for url in urls) and len(urls) > 1:
            raise click.UsageError(f"--{name}-url: a Unix socket must be the only URL")
        if is_socket(urls[0]) and not is_supported():
            raise click.UsageError(f"--{name}-url: Unix sockets between services need Linux")
        try:
            urls = [unix_url(url) if is_socket(url) else url for url in urls]
            self.pool.balance(name, urls, self.own_tls)
        except BackendError as error:
            raise click.UsageError(f"--{name}-url: {error}") from None
        return urls[0]

    def hold_identity(self, client: Client, component: str = "") -> None:
        """Create the identity Lease of this process, which is maintained once the server is ready.

        Args:
            client: writes the Lease.
            component: the value of the Lease's label; "" for `tetrapod-SERVICE`.
        """
        self.identity = IdentityLease(
            client,
            socket.gethostname(),
            peer_address(self.options),
            component=component or f"tetrapod-{self.name}",
            process_name=self.title,
        )

    def shared_cache(self) -> SharedCache | None:
        """Return a new cache that replicas share, closed at shutdown, or None without --redis-url."""
        flags = self.options.redis
        if not flags.url:
            return None
        secret = read_file(self.file("client.key"), "data-dir")  # the same for replicas of one service
        shared = SharedCache(flags.url, flags.password_file, secret=secret)
        self.lifecycle.on_shutdown("redis", shared.close)
        return shared

    def delegated(self) -> tuple[RequestAuthenticator, Authorizer]:
        """Return an authenticator and an authorizer that delegate to the auth service."""
        auth = self.client_of(self.options.peers.auth_url, "auth", f"tetrapod-{self.name}")
        authenticator = delegated_authenticator(
            self.options,
            auth,
            self.shared_cache(),
            self.clients.pool,
            self.proxies.pool,
            behind_aggregator=self.name != "aggregator",
        )
        return authenticator, delegated_authorizer(auth, self.storage, self.lifecycle)

    def on_listening(self) -> None:
        """Start background tasks that probe the replicas of peer services."""
        self.pool.follow(self.lifecycle)

    def on_ready(self) -> None:
        """Start to maintain the identity Lease, if there is one, and to update StorageVersions.

        Both need core. Core does so in post-start hooks, as a kube-apiserver.
        """
        if self.identity is not None and self.options.first_worker:
            self.lifecycle.background("identity-lease", self.identity.keep())
        if self.storage_versions is not None and self.name != "core":
            self.lifecycle.background("storage versions", self.storage_versions.run())

    async def close_connections(self) -> None:
        """Close the connections to peer services."""
        await self.pool.close()

    def describe(self) -> list[str]:
        """Return the lines that `tetrapod serve` prints when the server is ready: the service and its port."""
        return [f"tetrapod {self.name} is ready on port {self.http.port}"]


def separate_service(name: str) -> type[SeparateService]:
    """Import the module of the service `name`, and return its class.

    The modules of the other services are not imported: core has no code of auth in memory.
    """
    service: type[SeparateService] = importlib.import_module(f"tetrapod.apps.{name}").SERVICE
    return service
