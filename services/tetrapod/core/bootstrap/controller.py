"""The controller of the objects that upstream's kube-apiserver creates.

It creates missing ones at start and restores removed ones later.

Each step is a post-start hook with upstream's name.
Upstream:
pkg/controlplane/controller/{systemnamespaces,kubernetesservice,defaultservicecidr},
pkg/registry/scheduling/rest, pkg/registry/flowcontrol/rest.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import orjson

from tetrapod.core.bootstrap.authentication_trust import AuthenticationTrust
from tetrapod.core.bootstrap.default_service_cidr import DefaultServiceCIDR
from tetrapod.core.bootstrap.flow_control import FLOW_SCHEMAS, PRIORITY_LEVELS, SERVICES_FLOW_SCHEMA, FlowControlObjects
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.periodic import every, periodic_hook
from tetrapod.generic.client.reads import get_or_none
from tetrapod.generic.lifecycle import Hook, Lifecycle
from tetrapod.generic.server.kubernetes_service.identity import SERVER, IdentityLease
from tetrapod.machinery.golang.ip_addresses import join_host_port
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
SERVICES: Final = GroupVersionResource("", "v1", "services")
PRIORITY_CLASSES: Final = GroupVersionResource("scheduling.k8s.io", "v1", "priorityclasses")
SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


_PERIOD: Final = 60.0
_CHANGES_PERIOD: Final = 1.0
_SERVICE_PERIOD: Final = 10.0


@dataclass(frozen=True, slots=True)
class BootstrapConfig:
    """The values of this cluster and server that bootstrap objects contain.

    Attributes:
        service_networks: the service networks in CIDR notation, the primary one first, for the default ServiceCIDR.
        first_address: the first address of the primary one, for the service `kubernetes`.
        advertise_address: the address under which other API servers reach this one.
        port: the port of the API server.
        authentication: returns the data of the ConfigMap `extension-apiserver-authentication`.
        node_port: the node port of the service `kubernetes`; 0 for none.
        process_name: the name of this process if core runs as a separate service, else "".
        renews_identity: whether this process maintains the identity Lease of its server.
        peer_address: the host:port at which peer API servers reach this one; "" for that of the endpoints.
    """

    service_networks: tuple[str, ...]
    first_address: str
    advertise_address: str
    port: int
    authentication: Callable[[], dict[str, str]]
    node_port: int = 0
    process_name: str = ""
    renews_identity: bool = True
    peer_address: str = ""


class Bootstrap:
    """The controller of bootstrap objects, one method for each kind of object.

    Attributes:
        namespaces_ready: set once the system namespaces exist.
    """

    def __init__(self, client: Client, config: BootstrapConfig) -> None:
        self._client = client
        self._config = config
        self._trust = AuthenticationTrust(client, config.authentication)
        self.namespaces_ready = asyncio.Event()
        self._identity = IdentityLease(
            client,
            socket.gethostname(),
            config.peer_address or join_host_port(config.advertise_address, config.port),
            self.namespaces_ready,
            component="tetrapod-core" if config.process_name else SERVER,
            process_name=config.process_name,
            renewed_elsewhere=not config.renews_identity,
        )

    def register(self, lifecycle: Lifecycle) -> None:
        """Register a post-start hook for each kind of bootstrap object.

        The hook creates the objects. Most hooks then repeat this periodically in the background.
        """
        schemas = [*_data("flowschemas"), *([SERVICES_FLOW_SCHEMA] if self._config.process_name else [])]
        flow_control = FlowControlObjects(
            self._client, {PRIORITY_LEVELS: _data("prioritylevelconfigurations"), FLOW_SCHEMAS: schemas}
        )

        def keep(hook: str, work: Hook, period: float | None = _PERIOD, after: asyncio.Event | None = None) -> None:
            lifecycle.on_start(hook, periodic_hook(lifecycle, hook, work, period, after=after))

        keep_namespaces = periodic_hook(lifecycle, "start-system-namespaces-controller", self.namespaces, _PERIOD)

        async def namespaces() -> None:
            await keep_namespaces()
            self.namespaces_ready.set()

        lifecycle.on_start("start-system-namespaces-controller", namespaces)
        keep("start-cluster-authentication-info-controller", self._trust.write, after=self.namespaces_ready)
        changes = "cluster-authentication-info changes"
        lifecycle.background(changes, every(_CHANGES_PERIOD, changes, self._trust.write_if_changed))
        self._identity.register(lifecycle)
        keep("scheduling/bootstrap-system-priority-classes", self.priority_classes, period=None)
        keep("priority-and-fairness-config-producer", flow_control.ensure)
        keep("bootstrap-controller", self.kubernetes_service, _SERVICE_PERIOD, after=self.namespaces_ready)
        default_cidr = DefaultServiceCIDR(self._client, self._config.service_networks)
        keep("start-kubernetes-service-cidr-controller", default_cidr.sync, _SERVICE_PERIOD)

    async def namespaces(self) -> None:
        """Create the system namespaces that are missing: default, kube-system, kube-public and kube-node-lease.

        Raises:
            StatusError: the server rejected a request.
            Unavailable: the server cannot be reached.
        """
        namespaces = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SYSTEM_NAMESPACES
        ]
        await self._ensure(NAMESPACES, namespaces)

    async def priority_classes(self) -> None:
        """Create the system PriorityClasses that are missing: system-cluster-critical and system-node-critical.

        Raises:
            StatusError: the server rejected a request.
            Unavailable: the server cannot be reached.
        """
        await self._ensure(PRIORITY_CLASSES, _data("priorityclasses"))

    async def kubernetes_service(self) -> None:
        """Create the service `kubernetes` if it is missing.

        The aggregators write its endpoints themselves (generic/server/kubernetes_service). While another replica is
        creating it, the cluster IP can be allocated before the service exists. The create then fails with StatusError,
        and the caller tries again.

        Raises:
            StatusError: the service cannot be read or created.
            Unavailable: the server cannot be reached.
        """
        port: Object = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": self._config.port}
        if self._config.node_port:
            port["nodePort"] = self._config.node_port
        labels = {"component": "apiserver", "provider": "kubernetes"}
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
            "spec": {
                "ports": [port],
                "clusterIP": self._config.first_address,
                "ipFamilyPolicy": "SingleStack",
                "sessionAffinity": "None",
                "type": "NodePort" if self._config.node_port else "ClusterIP",
            },
        }
        if await get_or_none(self._client, SERVICES, "default", "kubernetes") is None:
            await self._create(SERVICES, "default", service)

    async def _ensure(self, gvr: GroupVersionResource, wanted: Sequence[Object]) -> None:
        """Create those of the cluster-scoped objects in `wanted` that do not exist; existing ones are not changed.

        They are created concurrently.

        Raises:
            StatusError: the server rejected a request.
            Unavailable: the server cannot be reached.
        """
        page = await self._client.list(gvr)
        present = {item["metadata"]["name"] for item in page.get("items") or ()}
        missing = [obj for obj in wanted if obj["metadata"]["name"] not in present]
        await asyncio.gather(*(self._create(gvr, "", obj) for obj in missing))

    async def _create(self, gvr: GroupVersionResource, namespace: str, obj: Object) -> None:
        """Create an object; do nothing if it exists.

        Raises:
            StatusError: the server rejected the object for another reason.
            Unavailable: the server cannot be reached.
        """
        try:
            await self._client.create(gvr, namespace, obj)
        except StatusError as error:
            if error.reason != "AlreadyExists":  # another replica was first
                raise


def _data(resource: str) -> list[Object]:
    """Return the objects of this resource in objects.json, a file of this package.

    Args:
        resource: "flowschemas", "prioritylevelconfigurations" or "priorityclasses".
    """
    objects_by_resource: dict[str, list[Object]] = orjson.loads(
        files(__package__).joinpath("objects.json").read_bytes()
    )
    return objects_by_resource[resource]
