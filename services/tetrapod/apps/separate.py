"""`tetrapod serve SERVICE`: one of the four on its own, over etcd; the others are reached over mTLS.

What differs from one process is the transport chosen here: in front the X-Remote-* headers of the aggregator are believed, tokens
are reviewed and rules resolved by auth, and controllers speak to the aggregator.
"""

from __future__ import annotations

import importlib
import logging
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.addresses import reachable_address
from tetrapod.apps.wiring.audit import build_audit
from tetrapod.apps.wiring.authentication import anonymous
from tetrapod.apps.wiring.authentication_trust import header_names
from tetrapod.apps.wiring.certificate_authorities import AuthorityFiles
from tetrapod.apps.wiring.encryption import encryption_of
from tetrapod.apps.wiring.files import read_file
from tetrapod.apps.wiring.health import add_certificate_check, add_storage_checks
from tetrapod.apps.wiring.listener import Door, listener
from tetrapod.apps.wiring.storage import check_backend, check_early, open_backend
from tetrapod.apps.wiring.tls import serving_tls
from tetrapod.apps.wiring.webhooks import webhook_client
from tetrapod.generic.authentication.bearer import BearerAuthenticator, WebSocketAuthenticator
from tetrapod.generic.authentication.delegating import TokenReviewer
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authentication.requestheader import RequestHeaderAuthenticator
from tetrapod.generic.authentication.shared_cache import SharedCache
from tetrapod.generic.authentication.sharedtokens import SharedTokens
from tetrapod.generic.authentication.tokencache import SUCCESS_SECONDS, CachedTokenAuthenticator
from tetrapod.generic.authentication.union import UnionAuthenticator
from tetrapod.generic.authentication.x509 import X509Authenticator
from tetrapod.generic.authorization.delegating import DelegatingAuthorizer, RuleSetCache, SubjectAccessReviewer
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.authorization.union import HealthPaths, Named, UnionAuthorizer
from tetrapod.generic.client.http import http_client
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.rest import RestClient
from tetrapod.generic.filters.draining import Draining
from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import CertificatePair
from tetrapod.generic.kubernetes_service.identity import IdentityLease
from tetrapod.generic.kubernetes_service.presence import Presence
from tetrapod.generic.lifecycle.lifecycle import Lifecycle
from tetrapod.generic.proxy.balanced import BalancedPool
from tetrapod.generic.proxy.connection import BackendError
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.generic.request import Handler
from tetrapod.generic.scheduling.config import FairScheduling
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory

log = logging.getLogger(__name__)

LINGER: Final = 5.0
"""Seconds for fronts to learn, by a probe or an answer, that this replica goes, and to close their connections themselves."""


class RemoteService:
    """What the four have in common when they run apart. A subclass says what it serves by `assemble`."""

    name = ""
    flow_control: FlowControl | None = None  # of the front door
    presence: Presence | None = None  # of the front door
    identity: IdentityLease | None = None

    def __init__(self, options: Options) -> None:
        if not options.etcd.servers:
            raise click.UsageError("--etcd-servers is needed: services that run apart share an etcd")
        self.options = options
        self.lifecycle = Lifecycle()
        self.draining = Draining(notify_aggregator=self.name != "aggregator")
        self.audit = build_audit(options.audit, self.lifecycle)
        self.pool = BalancedPool()
        self.backend = open_backend(options)
        self.encryption = encryption_of(options, self.lifecycle)
        self.storage = CachingStorageFactory(
            self.backend, options.etcd.prefix, self.encryption, FairScheduling(enabled=options.tetrapod.fair_scheduling)
        )
        self.webhooks = webhook_client(options, self.storage, self.lifecycle)
        self.clients = AuthorityFiles("client-ca-file", self.file("client-ca.crt", options.authentication.client_ca_file))
        front_proxy_ca = self.file("front-proxy-ca.crt", options.authentication.request_header.client_ca_file)
        self.proxies = AuthorityFiles("requestheader-client-ca-file", front_proxy_ca)
        self.ca = read_file(self.file("ca.crt"), "data-dir").decode()
        self.own_tls = ClientTLS(ca_data=self.ca, certificate=self.file("client.crt"), key=self.file("client.key"))
        add_storage_checks(self.lifecycle, options, self._probe_storage, lambda: check_backend(self.backend, options.etcd.prefix))
        add_certificate_check(self.lifecycle, self.file("tls.crt", options.serving.tls_cert_file))
        director, authenticator, authorizer = self.assemble()
        self.http = self._listen(director, authenticator, authorizer)

    def file(self, name: str, given: str = "") -> str:
        """Return the path of a file of this service: the value of a flag, or the default name in the data directory."""
        return given or str(Path(self.options.data_dir) / name)

    def assemble(self) -> tuple[Handler, RequestAuthenticator, Authorizer]:
        raise NotImplementedError

    def client_of(self, urls: Sequence[str], name: str, user_agent: str) -> RestClient:
        """Return a client of another service, which uses the replicas that are ready."""
        self.reach(urls, name)
        return http_client(self.pool, urls[0], self.own_tls, user_agent)

    @property
    def title(self) -> str:
        """What tells this process from all others on its host."""
        return f"{self.name}:{self.options.serving.secure_port}"

    def hold_identity(self, client: Client, component: str = "") -> None:
        address = reachable_address(self.options)
        self.identity = IdentityLease(
            client,
            socket.gethostname(),
            f"{f'[{address}]' if ':' in address else address}:{self.options.serving.secure_port}",
            component=component or f"tetrapod-{self.name}",
            apart=self.title,
        )

    def reach(self, urls: Sequence[str], name: str) -> None:
        """Check that the URLs of another service are set.

        Raises:
            click.UsageError: the flag with the URLs of the service is not set.
        """
        if not urls:
            raise click.UsageError(f"--{name}-url is needed to serve {self.name} on its own")
        try:
            self.pool.balance(name, urls, self.own_tls)
        except BackendError as error:
            raise click.UsageError(f"--{name}-url: {error}") from None

    def shared_cache(self) -> SharedCache | None:
        options = self.options
        if not options.redis.url:
            return None
        secret = read_file(self.file("client.key"), "data-dir")  # the same for replicas of one service
        shared = SharedCache(options.redis.url, options.redis.password_file, secret=secret)
        self.lifecycle.on_shutdown("redis", shared.close)
        return shared

    def delegated(self) -> tuple[RequestAuthenticator, Authorizer]:
        """Return authentication and authorization of a service behind the aggregator.

        Requests are authenticated by identity headers, client certificates, and tokens that the auth service reviews.
        """
        options = self.options
        auth = self.client_of(options.peers.auth_url, "auth", f"tetrapod-{self.name}")
        shared = self.shared_cache()
        known = SharedTokens(shared, "auth", SUCCESS_SECONDS) if shared is not None else None
        tokens = CachedTokenAuthenticator(TokenReviewer(auth), shared=known)
        anonymous_access = anonymous(options)
        request_header = options.authentication.request_header
        authenticator = UnionAuthenticator(
            [
                RequestHeaderAuthenticator(self.proxies.pool, request_header.allowed_names, header_names(request_header)),
                X509Authenticator(self.clients.pool),
                BearerAuthenticator(tokens, options.authentication.api_audiences),
                WebSocketAuthenticator(tokens, options.authentication.api_audiences),
            ],
            anonymous=anonymous_access.allowed,
            anonymous_paths=anonymous_access.paths,
        )
        rules = RuleSetCache(auth, self.storage)

        async def follow_rules() -> None:
            self.lifecycle.background("rule-sets", rules.run())

        self.lifecycle.on_start("start-authorization-informers", follow_rules)
        asked = DelegatingAuthorizer(rules, SubjectAccessReviewer(auth))
        return authenticator, UnionAuthorizer([Named("", HealthPaths()), Named("", asked)])

    def _listen(self, director: Handler, authenticator: RequestAuthenticator, authorizer: Authorizer) -> HttpServer:
        options = self.options
        service = "" if self.name == "aggregator" else self.name
        door = Door(authenticator, authorizer, self.draining, self.audit, self.flow_control, self.name, service)
        pair = CertificatePair(
            self.file("tls.crt", options.serving.tls_cert_file), self.file("tls.key", options.serving.tls_private_key_file)
        )
        trusted = [
            self.file("client-ca.crt", options.authentication.client_ca_file),
            self.file("front-proxy-ca.crt", options.authentication.request_header.client_ca_file),
        ]
        return listener(director, options, door, serving_tls(options.serving, pair, trusted), self.lifecycle)

    async def _probe_storage(self) -> None:
        await self.backend.revision()

    async def start(self) -> None:
        if self.encryption is not None:
            await self.encryption.start()
        await check_early(self.backend, self.options.etcd.prefix)
        await self.http.start()
        self.clients.follow(self.lifecycle)
        self.proxies.follow(self.lifecycle)
        self.pool.follow(self.lifecycle)
        await self.lifecycle.start()
        if self.identity is not None:
            self.lifecycle.background("identity-lease", self.identity.keep())
        if self.presence is not None:
            self.presence.start(self.lifecycle)

    def describe(self) -> list[str]:
        return [f"tetrapod {self.name} is ready on port {self.http.port}"]

    async def stop(self) -> None:
        await self.lifecycle.leave(self.options.generic.shutdown_delay_duration)
        self.draining.begin()
        await self.http.stop(self.options.shutdown_grace, linger=LINGER)
        await self.lifecycle.stop()
        await self.pool.close()
        await self.storage.close()
        if self.encryption is not None:
            await self.encryption.close()
        await self.backend.close()


def remote_service(name: str, options: Options) -> Callable[[], RemoteService]:
    """Each service is imported only where it runs: a core has no code of auth in memory."""
    module = importlib.import_module(f"tetrapod.apps.{name}")
    service: type[RemoteService] = module.SERVICE
    return lambda: service(options)
