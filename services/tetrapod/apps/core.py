"""core on its own."""

from __future__ import annotations

from tetrapod.aggregator.delegation.remote import side_of
from tetrapod.apps.separate import RemoteService
from tetrapod.apps.wiring.addresses import reachable_address
from tetrapod.apps.wiring.authentication_trust import authentication_data
from tetrapod.apps.wiring.core_admission import chosen_admission
from tetrapod.apps.wiring.kubelet import kubelet_config
from tetrapod.apps.wiring.leader_election import leadership
from tetrapod.apps.wiring.openapi import install_openapi
from tetrapod.core.service import CoreConfig, CoreService
from tetrapod.generic.admission.surroundings import PluginDependencies
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.client.nearest import SplitClient
from tetrapod.generic.client.token_requests import RemoteTokenRequestRest, remote_secret_signer
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.generic.server.server import GenericAPIServer


class RemoteCore(RemoteService):
    """The core service as a process."""

    name = "core"

    def assemble(self) -> tuple[Handler, RequestAuthenticator, Authorizer]:
        options = self.options
        authenticator, authorizer = self.delegated()
        auth = self.client_of(options.peers.auth_url, "auth", "tetrapod-core")
        client = in_process_client(self._director, "kube-apiserver")
        aggregator = self.client_of(options.peers.aggregator_url, "aggregator", "kube-apiserver")
        dependencies = PluginDependencies(
            self.storage,
            authorizer,
            aggregator,
            self.lifecycle.background,
            self.webhooks,
            options.tetrapod.break_glass,
            (options.admission.default_not_ready_toleration_seconds, options.admission.default_unreachable_toleration_seconds),
        )
        admission = chosen_admission(dependencies, options)
        self.server = GenericAPIServer(
            "core", self.storage, admission, self.lifecycle, authorizer=authorizer, profiling=options.features.profiling
        )
        controllers = SplitClient(
            in_process_client(self._director, "kube-controller-manager"),
            self.client_of(options.peers.aggregator_url, "aggregator", "kube-controller-manager"),
            lambda group: side_of(group) == self.name,
        )
        self.core = CoreService(
            self.server,
            CoreConfig(
                options.workloads.service_cluster_ip_range,
                options.workloads.service_node_port_range,
                reachable_address(options),
                options.serving.secure_port,
                self.ca,
                authentication_data(options.authentication.request_header, self.clients, self.proxies),
                options.tetrapod.controllers,
                kubelet_config(options.kubelet),
                options.tetrapod.collection_delay,
                apart=self.title,
                event_ttl=options.workloads.event_ttl,
                allow_privileged=options.workloads.allow_privileged,
            ),
            client,
            controllers,
            RemoteTokenRequestRest(auth),
            remote_secret_signer(auth),
            {"etcd-0": self._probe_storage},
            leadership(options, self.name, controllers),
        )
        self.server.flags = self.options.flags()
        install_openapi(self.server.routes, self.server.openapi(), behind=True)
        self.core.register(self.lifecycle)
        return self._director, authenticator, authorizer

    async def _director(self, request: Request) -> Response:
        return await self.server.director(request)


SERVICE = RemoteCore
