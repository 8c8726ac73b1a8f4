"""The core service as a process of its own."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tetrapod.aggregator.delegation.groups import service_of
from tetrapod.apps.separate import Assembled, SeparateService
from tetrapod.apps.wiring.addresses import reachable_address
from tetrapod.apps.wiring.authentication_trust import authentication_data
from tetrapod.apps.wiring.core_service import build_core_admission, core_config
from tetrapod.apps.wiring.leader_election import build_leadership
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.core.service import CoreService
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.client.nearest_client import SplitClient
from tetrapod.generic.client.token_requests import RemoteTokenRequestRest, remote_secret_signer
from tetrapod.generic.http.request import Request, Response


class SeparateCore(SeparateService):
    """The program of `tetrapod serve core`: the core service as a process of its own."""

    name = "core"

    def assemble(self) -> Assembled:
        """Create the core service, register its hooks, and return its handler, authenticator and authorizer."""
        options = self.options
        authenticator, authorizer = self.delegated()
        auth = self.client_of(options.peers.auth_url, "auth", "tetrapod-core")
        aggregator = self.client_of(options.peers.aggregator_url, "aggregator", "kube-apiserver")
        admission = build_core_admission(options.admission, self.plugin_dependencies(authorizer, aggregator))
        self.server = self.generic_server("core", admission, authorizer)
        controller_client = SplitClient(
            in_process_client(self._director, "kube-controller-manager"),
            self.client_of(options.peers.aggregator_url, "aggregator", "kube-controller-manager"),
            lambda group: service_of(group) == self.name,
        )
        client = in_process_client(self._director, "kube-apiserver")
        core = CoreService(
            self.server,
            core_config(
                options,
                address=reachable_address(options),
                ca=self.ca,
                authentication=authentication_data(options.authentication.request_header, self.clients, self.proxies),
                process_name=self.title,
                egress=self.egress,
            ),
            client=client,
            controller_client=controller_client,
            token_rest=RemoteTokenRequestRest(auth),
            sign=remote_secret_signer(auth),
            probes=self.storage_probes(),
            leadership=build_leadership(options, self.name, controller_client),
        )
        install_openapi(self.server.routes, self.server.openapi(), behind=True)
        core.register(self.lifecycle)
        return Assembled(self._director, authenticator, authorizer, self.server, client)

    def _director(self, request: Request) -> Coroutine[Any, Any, Response]:
        return self.server.director(request)


SERVICE = SeparateCore
