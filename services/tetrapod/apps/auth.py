"""The auth service as a process of its own. It alone has the key that signs service account tokens."""

from __future__ import annotations

from dataclasses import replace

from tetrapod.apps.separate import Assembled, SeparateService
from tetrapod.apps.wiring.admission import build_admission
from tetrapod.apps.wiring.auth_service import auth_options
from tetrapod.apps.wiring.leader_election import build_leadership
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.auth.service import AuthService


class SeparateAuth(SeparateService):
    """The program of `tetrapod serve auth`: the auth service as a process of its own."""

    name = "auth"

    def assemble(self) -> Assembled:
        """Create the auth service, register its hooks, and return its handler, authenticator and authorizer."""
        options, accounts = self.options, self.options.authentication.service_accounts
        if not accounts.signing_endpoint:
            signing_key = self.file("sa.key", accounts.signing_key_file)
            options = options.with_flags({"service-account-signing-key-file": signing_key})
        client = self.client_of(options.peers.aggregator_url, "aggregator", "kube-controller-manager")
        self.hold_identity(client)
        configured = auth_options(
            options, self.clients.pool, self.proxies.pool, reserve_services=False, egress=self.egress
        )
        configured = replace(configured, shared=self.shared_cache())
        auth = AuthService(self.storage, configured, client, build_leadership(options, self.name, client))
        admission = build_admission(options.admission, self.plugin_dependencies(auth.authorizer, client))
        server = self.generic_server("auth", admission, auth.authorizer)
        server.install(auth.definitions)
        for path, handler in auth.rest_routes.items():
            server.routes.add_rest(path, handler)
        for path, handler in auth.routes.items():
            server.routes.add(path, handler)
        server.documents.update(auth.documents)
        install_openapi(server.routes, server.openapi(), behind=True)
        auth.register(self.lifecycle)
        return Assembled(server.director, auth.authenticator, auth.authorizer, server, client)


SERVICE = SeparateAuth
