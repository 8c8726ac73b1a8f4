"""The aggregator as a process of its own. It reaches core, extensions and auth over mTLS, as the front proxy."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tetrapod.aggregator.delegation.peer import PeerService
from tetrapod.aggregator.delegation.remote import RemoteDelegation
from tetrapod.aggregator.service import AggregatorService
from tetrapod.apps.separate import Assembled, SeparateService
from tetrapod.apps.wiring.addresses import reachable_address
from tetrapod.apps.wiring.admission import build_admission
from tetrapod.apps.wiring.aggregator_service import aggregator_config, build_presence, proxy_certificate
from tetrapod.apps.wiring.audit import audited
from tetrapod.apps.wiring.flow_control import build_flow_control
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.openapi.source import DocumentSource, JoinedSource
from tetrapod.generic.proxy.tls import ClientTLS
from tetrapod.generic.server.kubernetes_service.identity import SERVER


class SeparateAggregator(SeparateService):
    """The program of `tetrapod serve aggregator`, which reaches the peer services in other processes over mTLS."""

    name = "aggregator"

    def assemble(self) -> Assembled:
        """Create the aggregator over the peer services, register its hooks, and return its handler.

        The result also has its authenticator and authorizer.
        """
        options = self.options
        authenticator, authorizer = self.delegated()
        own = in_process_client(audited(self._director, self.audit), "kube-apiserver")
        admission = build_admission(options.admission, self.plugin_dependencies(authorizer, own))
        server = self.generic_server("aggregator", admission, authorizer)
        certificate = proxy_certificate(
            options, self.file("front-proxy-client.crt"), self.file("front-proxy-client.key")
        )
        tls = ClientTLS(ca_data=self.ca, certificate=certificate.certificate, key=certificate.key)
        urls = {
            "core": options.peers.core_url,
            "auth": options.peers.auth_url,
            "extensions": options.peers.extensions_url,
        }
        peers = {
            name: PeerService(name, self.pool, self.balance(replicas, name), tls, self.resource_config)
            for name, replicas in urls.items()
        }
        for peer in peers.values():
            server.health.remote.append(peer.checks)
            server.listed.append(peer.checks.paths)
        delegation = RemoteDelegation(server, peers)
        client = delegation.client("kube-apiserver")
        self.hold_identity(client, SERVER)
        self.presence = build_presence(
            options, client, self.overrides.server_leases(self.backend), reachable_address(options)
        )
        self.aggregator = AggregatorService(
            server,
            aggregator_config(options, certificate, self.egress, self.title),
            client,
            local=delegation.handle,
            sources=[server.source, *peers.values()],
        )
        delegation.director = audited(self.aggregator.director, self.audit)
        documents: list[DocumentSource] = [
            server.openapi(),
            *(peer.documents for peer in peers.values()),
            self.aggregator.external_openapi,
        ]
        install_openapi(server.routes, JoinedSource(documents))
        self.flow_control = build_flow_control(options, server.routes, client, self.lifecycle, forwards=True)
        delegation.register(self.lifecycle)
        self.aggregator.register(self.lifecycle)
        return Assembled(self._director, authenticator, authorizer, server, client)

    def _director(self, request: Request) -> Coroutine[Any, Any, Response]:
        return self.aggregator.director(request)


SERVICE = SeparateAggregator
