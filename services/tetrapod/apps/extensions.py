"""extensions on its own."""

from __future__ import annotations

from tetrapod.apps.separate import RemoteService
from tetrapod.apps.wiring.admission import general_admission
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.extensions.service import ExtensionsService
from tetrapod.generic.admission.surroundings import PluginDependencies
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.discovery.joined import JoinedDiscovery
from tetrapod.generic.openapi.source import JoinedSource
from tetrapod.generic.request import Handler
from tetrapod.generic.server.server import GenericAPIServer


class RemoteExtensions(RemoteService):
    """The extensions service as a process."""

    name = "extensions"

    def assemble(self) -> tuple[Handler, RequestAuthenticator, Authorizer]:
        authenticator, authorizer = self.delegated()
        client = self.client_of(self.options.peers.aggregator_url, "aggregator", "kube-apiserver")
        self.hold_identity(client)
        dependencies = PluginDependencies(
            self.storage, authorizer, client, self.lifecycle.background, self.webhooks, self.options.tetrapod.break_glass
        )
        admission = general_admission(dependencies, self.options)
        self.extensions = ExtensionsService(self.storage, admission, self.lifecycle, client, self.webhooks, authorizer)
        self.server = GenericAPIServer(
            "extensions",
            self.storage,
            admission,
            self.lifecycle,
            authorizer=authorizer,
            fallback=self.extensions.handler,
            profiling=self.options.features.profiling,
        )
        self.server.install(self.extensions.definitions)
        self.server.discover(JoinedDiscovery([self.server.source, self.extensions.discovery]))
        self.server.flags = self.options.flags()
        install_openapi(self.server.routes, JoinedSource([self.server.openapi(), self.extensions.openapi]), behind=True)
        self.extensions.register()
        return self.server.director, authenticator, authorizer


SERVICE = RemoteExtensions
