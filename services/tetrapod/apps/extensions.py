"""The extensions service as a process of its own."""

from __future__ import annotations

from tetrapod.apps.separate import Assembled, SeparateService
from tetrapod.apps.wiring.admission import build_admission
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.extensions.service import ExtensionsService
from tetrapod.generic.discovery.combined_source import JoinedDiscovery
from tetrapod.generic.openapi.source import JoinedSource


class SeparateExtensions(SeparateService):
    """The program of `tetrapod serve extensions`: the extensions service as a process of its own."""

    name = "extensions"

    def assemble(self) -> Assembled:
        """Create the extensions service, register its hooks, and return its handler, authenticator and authorizer."""
        authenticator, authorizer = self.delegated()
        client = self.client_of(self.options.peers.aggregator_url, "aggregator", "kube-apiserver")
        self.hold_identity(client)
        admission = build_admission(self.options.admission, self.plugin_dependencies(authorizer, client))
        extensions = ExtensionsService(self.storage, admission, self.lifecycle, client, self.webhooks, authorizer)
        server = self.generic_server("extensions", admission, authorizer, fallback=extensions.handler)
        server.install(extensions.definitions)
        server.discover(JoinedDiscovery([server.source, extensions.discovery]))
        install_openapi(server.routes, JoinedSource([server.openapi(), extensions.openapi]), behind=True)
        extensions.register()
        return Assembled(server.director, authenticator, authorizer, server, client)


SERVICE = SeparateExtensions
