"""The aggregator on its own: the front door; core, extensions and auth are reached over mTLS as the front proxy."""

from __future__ import annotations

from tetrapod.aggregator.backends import ProxyCertificate
from tetrapod.aggregator.delegation.remote import RemoteDelegation, RemoteSide
from tetrapod.aggregator.service import AggregatorConfig, AggregatorService
from tetrapod.apps.separate import RemoteService
from tetrapod.apps.wiring.addresses import external_address, presence, reachable_address
from tetrapod.apps.wiring.admission import general_admission
from tetrapod.apps.wiring.audit import audited
from tetrapod.apps.wiring.flow_control import flow_control
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.generic.admission.surroundings import PluginDependencies
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.kubernetes_service.identity import SERVER
from tetrapod.generic.openapi.source import DocumentSource, JoinedSource
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.generic.server.server import GenericAPIServer


class RemoteAggregator(RemoteService):
    """The aggregator as a process."""

    name = "aggregator"

    def assemble(self) -> tuple[Handler, RequestAuthenticator, Authorizer]:
        options = self.options
        authenticator, authorizer = self.delegated()
        own = in_process_client(audited(self._director, self.audit), "kube-apiserver")
        dependencies = PluginDependencies(
            self.storage, authorizer, own, self.lifecycle.background, self.webhooks, options.tetrapod.break_glass
        )
        admission = general_admission(dependencies, options)
        server = GenericAPIServer(
            "aggregator", self.storage, admission, self.lifecycle, authorizer=authorizer, profiling=options.features.profiling
        )
        certificate = ProxyCertificate(
            self.file("front-proxy-client.crt", options.aggregation.proxy_client_cert_file),
            self.file("front-proxy-client.key", options.aggregation.proxy_client_key_file),
        )
        tls = ClientTLS(ca_data=self.ca, certificate=certificate.certificate, key=certificate.key)
        urls = {"core": options.peers.core_url, "auth": options.peers.auth_url, "extensions": options.peers.extensions_url}
        for name, some in urls.items():
            self.reach(some, name)
        sides = {name: RemoteSide(name, self.pool, some[0], tls) for name, some in urls.items()}
        self.delegation = RemoteDelegation(server, sides)
        client = self.delegation.client("kube-apiserver")
        self.hold_identity(client, SERVER)
        self.presence = presence(options, client, self.backend, reachable_address(options))
        self.aggregator = AggregatorService(
            server,
            AggregatorConfig(
                options.aggregation.enable_routing, certificate, options.aggregation.reject_forwarding_redirect, external_address(options)
            ),
            client,
            local=self.delegation.handle,
            sources=[server.source, *sides.values()],
        )
        self.delegation.front = audited(self.aggregator.director, self.audit)
        documents: list[DocumentSource] = [
            server.openapi(),
            *(side.documents for side in sides.values()),
            self.aggregator.external_openapi,
        ]
        server.flags = self.options.flags()
        install_openapi(server.routes, JoinedSource(documents))
        self.flow_control = flow_control(options, server.routes, client, self.lifecycle, forwards=True)
        self.delegation.register(self.lifecycle)
        self.aggregator.register(self.lifecycle)
        return self._director, authenticator, authorizer

    async def _director(self, request: Request) -> Response:
        return await self.aggregator.director(request)


SERVICE = RemoteAggregator
