"""auth on its own: it alone has the signing key."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.apps.separate import RemoteService
from tetrapod.apps.wiring.admission import general_admission
from tetrapod.apps.wiring.auth_service import auth_options
from tetrapod.apps.wiring.leader_election import leadership
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.auth.service import AuthService
from tetrapod.generic.admission.surroundings import PluginDependencies
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.request import Handler
from tetrapod.generic.server.server import GenericAPIServer


class RemoteAuth(RemoteService):
    """The auth service as a process."""

    name = "auth"

    def assemble(self) -> tuple[Handler, RequestAuthenticator, Authorizer]:
        signing_key = self.file("sa.key", self.options.authentication.service_accounts.signing_key_file)
        options = self.options.with_flags({"service-account-signing-key-file": signing_key})
        client = self.client_of(options.peers.aggregator_url, "aggregator", "kube-controller-manager")
        self.hold_identity(client)
        given = replace(
            auth_options(options, self.clients.pool, self.proxies.pool, reserve_services=False),
            shared=self.shared_cache(),
        )
        self.auth = AuthService(self.storage, given, client, leadership(options, self.name, client))
        dependencies = PluginDependencies(
            self.storage, self.auth.authorizer, client, self.lifecycle.background, self.webhooks, self.options.tetrapod.break_glass
        )
        admission = general_admission(dependencies, options)
        self.server = GenericAPIServer(
            "auth", self.storage, admission, self.lifecycle, authorizer=self.auth.authorizer, profiling=options.features.profiling
        )
        self.server.install(self.auth.definitions)
        for path, handler in self.auth.rest_routes.items():
            self.server.routes.add_rest(path, handler)
        for path, handler in self.auth.routes.items():
            self.server.routes.add(path, handler)
        self.server.documents.update(self.auth.documents)
        self.server.flags = self.options.flags()
        install_openapi(self.server.routes, self.server.openapi(), behind=True)
        self.auth.register(self.lifecycle)
        return self.server.director, self.auth.authenticator, self.auth.authorizer


SERVICE = RemoteAuth
