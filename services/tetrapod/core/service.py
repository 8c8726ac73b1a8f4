"""`CoreService`, the service of the built-in groups: resources, allocators, bootstrap and node-less controllers.

The package `apps` creates it and passes in everything that it depends on. It does not know the other services.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tetrapod.core.admissionregistration.policy_strategies import ParamAccess
from tetrapod.core.allocators import metrics as allocator_metrics
from tetrapod.core.allocators.cluster_ips import ClusterIPs
from tetrapod.core.allocators.node_ports import NodePorts
from tetrapod.core.allocators.repair_addresses import SERVICES, AddressRepair
from tetrapod.core.allocators.repair_ports import PortRepair
from tetrapod.core.allocators.service_ranges import service_ranges
from tetrapod.core.bootstrap.controller import Bootstrap, BootstrapConfig
from tetrapod.core.controllers.bootstrap_tokens import BootstrapSigner, TokenCleaner
from tetrapod.core.controllers.certificate_cleaners import PodCertificateRequestCleaner, SigningRequestCleaner
from tetrapod.core.controllers.certificate_requests import RequestApprover, RequestSigner, SigningKeys
from tetrapod.core.controllers.coordinated_elections import CANDIDATES, CandidateCleaner, ElectionController
from tetrapod.core.controllers.garbage_collector import GarbageCollector
from tetrapod.core.controllers.legacy_tokens import LegacyTokenCleaner
from tetrapod.core.controllers.manager import Controller, Shared, selected
from tetrapod.core.controllers.namespaces import NamespaceController
from tetrapod.core.controllers.policy_status import PolicyStatus
from tetrapod.core.controllers.protection import POD_GROUPS, ClaimProtection, PodGroupProtection, VolumeProtection
from tetrapod.core.controllers.resource_quota import ResourceQuotaController
from tetrapod.core.controllers.root_ca import RootCAPublisher
from tetrapod.core.controllers.service_accounts import NAMESPACES, ServiceAccountController
from tetrapod.core.controllers.service_networks import ServiceNetworks
from tetrapod.core.controllers.storage_version_collector import StorageVersionCollector
from tetrapod.core.controllers.storage_version_migrator import MIGRATIONS, StorageVersionMigrator
from tetrapod.core.controllers.token_secrets import Signer, TokenSecretController
from tetrapod.core.controllers.trust_bundle import BUNDLES, TrustBundlePublisher
from tetrapod.core.controllers.ttl_after_finished import JOBS, TTLAfterFinished
from tetrapod.core.controllers.watched_resources import SETTLE
from tetrapod.core.controllers.webhook_hazards import WebhookHazards
from tetrapod.core.podspec import capabilities
from tetrapod.core.resource.resource_claims.strategy import ClaimAccess
from tetrapod.core.resources import Dependencies, definitions
from tetrapod.core.subresources.locations import UNVERIFIED, Backends, KubeletConfig
from tetrapod.core.v1.component_statuses import ComponentStatusRest, Probe, local_components
from tetrapod.core.v1.pods.binding import BindingRest, PodBindingRest
from tetrapod.core.v1.pods.eviction import EvictionRest
from tetrapod.core.v1.pods.resize import ResizeStrategy
from tetrapod.core.v1.pods.strategy import EphemeralContainersStrategy
from tetrapod.core.v1.resources import streaming_subresources
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.leaderelection.elector import ElectionConfig, Elector
from tetrapod.generic.client.leaderelection.leadership import ALONE, Leadership, lead
from tetrapod.generic.client.leaderelection.lock import LeaseLock
from tetrapod.generic.dialing import Dialer
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.proxy import BackendPool
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.server import storage_versions
from tetrapod.generic.server.controllers import KNOWN, enabled
from tetrapod.generic.server.server import GenericAPIServer


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """The configuration of the core service.

    Attributes:
        service_cluster_ip_range: the CIDRs of cluster IPs, one or two, separated by a comma.
        node_ports: the range of node ports, such as "30000-32767".
        kubernetes_node_port: the node port of the Service `kubernetes`; 0 for none.
        advertise_address: the address in the endpoints of the Service `kubernetes`.
        port: the port in those endpoints.
        ca: the PEM bundle that ConfigMaps `kube-root-ca.crt` and token Secrets contain.
        authentication: returns the data of the ConfigMap `extension-apiserver-authentication`.
        controllers: the value of `--controllers`.
        kubelet: how to connect to kubelets.
        collection_delay: seconds from a custom resource's first object until the garbage collector watches the
            resource.
        process_name: the name of this process if core runs as a separate service, else "".
        renews_identity: whether this process maintains the identity Lease of its server.
        peer_address: the host:port at which peer API servers reach this one; "" for that of the endpoints.
        event_ttl: seconds until an event is deleted.
        allow_privileged: whether containers may be privileged.
        signing: the CAs of the signers of certificate requests.
        max_connection_bytes_per_second: the limit in each direction of exec, attach, port-forward and other upgraded
            connections; 0 for none.
        dialer: connects to kubelets, pods and services by way of a proxy; None to connect directly.
        coordination: the Lease of the controller of coordinated leader elections; None to run without this controller.
    """

    service_cluster_ip_range: str
    node_ports: str
    advertise_address: str
    port: int
    ca: str
    authentication: Callable[[], dict[str, str]]
    controllers: Sequence[str] = ("*",)
    kubelet: KubeletConfig = UNVERIFIED
    collection_delay: float = SETTLE
    kubernetes_node_port: int = 0
    process_name: str = ""
    renews_identity: bool = True
    peer_address: str = ""
    event_ttl: float = 3600.0
    allow_privileged: bool = True
    signing: SigningKeys = field(default_factory=SigningKeys)
    max_connection_bytes_per_second: int = 0
    dialer: Dialer | None = None
    coordination: ElectionConfig | None = None


_RESOURCES_OF_CONTROLLERS: Final = {
    SigningRequestCleaner.name: SigningRequestCleaner.gvr,
    RequestApprover.name: SigningRequestCleaner.gvr,
    RequestSigner.name: SigningRequestCleaner.gvr,
    TrustBundlePublisher.name: BUNDLES,
    PodCertificateRequestCleaner.name: PodCertificateRequestCleaner.gvr,
    PodGroupProtection.name: POD_GROUPS,
    StorageVersionCollector.name: storage_versions.STORAGE_VERSIONS,
    StorageVersionMigrator.name: MIGRATIONS,
    TTLAfterFinished.name: JOBS,
}
"""The controllers of resources that --runtime-config may disable. They do not run then."""


class CoreService:
    """The core service. The constructor installs its resources in `server`; `register` adds background tasks.

    Only the replica that holds `leadership` runs the controllers. Each replica maintains the bootstrap objects and
    repairs allocations, which upstream's kube-apiserver does itself.

    Args:
        client: sends requests through the aggregator as the server itself.
        controller_client: sends requests through the aggregator as the controllers.
        token_rest: the subresource `serviceaccounts/token`.
        sign: requests a service account token from the auth service.
        probes: health probes for componentstatuses by name, besides those of the scheduler and the controller manager.
    """

    def __init__(
        self,
        server: GenericAPIServer,
        config: CoreConfig,
        client: Client,
        controller_client: Client,
        token_rest: Rest,
        sign: Signer,
        probes: Mapping[str, Probe],
        leadership: Leadership = ALONE,
    ) -> None:
        capabilities.set_up(privileged=config.allow_privileged)
        self.server = server
        self._config = config
        self._client = client
        self._sign = sign
        self._controller_client = controller_client
        self._leadership = leadership
        self.backends = BackendPool(max_bytes_per_second=config.max_connection_bytes_per_second, dialer=config.dialer)
        self._addresses = addresses = ClusterIPs(service_ranges(config.service_cluster_ip_range), client)
        self._ports = ports = NodePorts(config.node_ports, server.storage)
        dependencies = Dependencies(
            subresources=self._subresources(token_rest, probes),
            addresses=addresses,
            ports=ports,
            parameters=ParamAccess(server.authorizer, client, server.storage),
            claims=ClaimAccess(server.authorizer, server.storage),
            authorizer=server.authorizer,
            event_ttl=int(config.event_ttl),
        )
        server.install(definitions(dependencies))
        self.bootstrap = Bootstrap(
            client,
            BootstrapConfig(
                tuple(map(str, addresses.ranges)),
                addresses.first,
                config.advertise_address,
                config.port,
                config.authentication,
                node_port=_kubernetes_node_port(config.kubernetes_node_port, ports),
                process_name=config.process_name,
                renews_identity=config.renews_identity,
                peer_address=config.peer_address,
            ),
        )

    def _subresources(self, token_rest: Rest, probes: Mapping[str, Probe]) -> dict[str, Rest | Strategy]:
        stores, family = self.server.stores, self._addresses.families[0]
        backends = Backends(self.backends, self._config.kubelet)
        return {
            "bindings": BindingRest(stores),
            "pods/binding": PodBindingRest(stores),
            "pods/eviction": EvictionRest(stores, self._client),
            "pods/ephemeralcontainers": EphemeralContainersStrategy(),
            "pods/resize": ResizeStrategy(),
            "serviceaccounts/token": token_rest,
            "componentstatuses": ComponentStatusRest({**local_components(), **probes}),
            **streaming_subresources(stores, backends, self.server.authorizer, family),
        }

    def register(self, lifecycle: Lifecycle) -> None:
        """Register the post-start hooks: bootstrap first, then the controllers and the repair of allocations.

        The connections to kubelets, pods and services are closed at shutdown.
        """
        self.bootstrap.register(lifecycle)
        lifecycle.on_shutdown("core-backends", self.backends.close)

        async def start() -> None:
            await self.bootstrap.namespaces_ready.wait()  # the Lease is in one of them
            elected = any(enabled(controller, self._config.controllers) for controller in KNOWN)
            lead("core", self._leadership if elected else ALONE, self._led, lifecycle)

        async def repair() -> None:
            services = Informer(self._client, SERVICES)
            lifecycle.follow("servicecidrs", self._addresses.service_cidrs)
            lifecycle.follow("ipaddresses", self._addresses.ip_addresses)
            lifecycle.follow("services", services)
            allocator_metrics.register(self._addresses)
            address_repair = AddressRepair(self._client, self._addresses, services)
            for repairing in (address_repair, PortRepair(self._client, self._ports)):
                lifecycle.background(repairing.name, repairing.run())

        async def coordinate() -> None:
            assert self._config.coordination is not None
            await self.bootstrap.namespaces_ready.wait()
            lock = LeaseLock(self._client, self._config.coordination.namespace, self._config.coordination.name)
            lead("coordinated elections", Elector(lock, self._config.coordination), self._coordinated, lifecycle)

        lifecycle.on_start("generic-apiserver-start-informers", start)
        if self._config.coordination is not None:
            lifecycle.on_start("start-kube-apiserver-coordinated-leader-election-controller", coordinate)
        lifecycle.on_start("start-service-ip-repair-controllers", repair)

    def _coordinated(self) -> list[Controller]:
        """Create the controllers of coordinated leader elections; none if LeaseCandidates are not served."""
        if not self.server.resource_config.enabled(*CANDIDATES):
            return []
        return [ElectionController(self._client), CandidateCleaner(self._client)]

    def _led(self) -> list[Controller]:
        """Create the controllers that run while this replica holds the leadership.

        These are the ones that `--controllers` selects, the namespace informer that they share, and the controller that
        warns about webhooks that could block the control plane.
        """
        namespaces = Informer(self._controller_client, NAMESPACES)
        controllers = selected(self.controllers(namespaces), self._config.controllers)
        controllers = [controller for controller in controllers if self._has_resources(controller.name)]
        return [Shared("namespaces", namespaces), *controllers, WebhookHazards(self._controller_client, namespaces)]

    def _has_resources(self, controller: str) -> bool:
        """Return whether the server serves the resource of a controller; if not, the controller is not created.

        Most controllers work on resources that are always served.

        Args:
            controller: the name of the controller.
        """
        resource = _RESOURCES_OF_CONTROLLERS.get(controller)
        return resource is None or self.server.resource_config.enabled(*resource)

    def controllers(self, namespaces: Informer) -> list[Controller]:
        """Create all controllers that `--controllers` can select; they do not run yet.

        Args:
            namespaces: the informer that some of them share. The caller runs it.
        """
        client = self._controller_client
        signing = self._config.signing
        return [
            NamespaceController(client, namespaces),
            ServiceAccountController(client, namespaces),
            RootCAPublisher(client, namespaces, self._config.ca),
            TrustBundlePublisher(client, self._config.ca),
            SigningRequestCleaner(client),
            *((RequestApprover(client), RequestSigner(client, signing)) if signing.files else ()),
            PodCertificateRequestCleaner(client),
            LegacyTokenCleaner(client),
            TokenCleaner(client),
            BootstrapSigner(client),
            ServiceNetworks(client),
            GarbageCollector(client, self.server.storage.presence(), self._config.collection_delay),
            TokenSecretController(client, self._sign, self._config.ca),
            ClaimProtection(client),
            VolumeProtection(client),
            PodGroupProtection(client),
            TTLAfterFinished(client),
            PolicyStatus(client),
            StorageVersionMigrator(client),
            *((StorageVersionCollector(client),) if storage_versions.enabled() else ()),
            ResourceQuotaController(client),
        ]


def _kubernetes_node_port(port: int, ports: NodePorts) -> int:
    """Return the node port of the Service `kubernetes`, 0 for none.

    Args:
        port: the value of --kubernetes-service-node-port.
        ports: the allocator, whose range must contain the port.

    Upstream: cmd/kube-apiserver/app/options/validation.go, validateServiceNodePort

    Raises:
        ValueError: the port is out of range; the text is upstream's.
    """
    if not 0 <= port <= 65535:
        text = "must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type ClusterIP"
        raise ValueError(f"--kubernetes-service-node-port {port} {text}")
    if port and not ports.low <= port <= ports.high:
        raise ValueError(f"kubernetes service node port range {ports.range} doesn't contain {port}")
    return port
