"""Keeps the objects that upstream's kube-apiserver makes: at start, where they are missing, and again if somebody removes them.

Upstream: pkg/controlplane/controller/{systemnamespaces,kubernetesservice,defaultservicecidr,clusterauthenticationtrust},
pkg/registry/scheduling/rest, pkg/registry/flowcontrol/rest. Each step is a post-start hook under upstream's name.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import orjson

from tetrapod.core.bootstrap.flow_control import FLOW_SCHEMAS, PRIORITY_LEVELS, SERVICES_FLOW_SCHEMA, FlowControlObjects
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.periodic import every
from tetrapod.generic.client.reading import get_if_there
from tetrapod.generic.frontdoor.identity import SERVER, IdentityLease
from tetrapod.generic.lifecycle import Hook, Lifecycle
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import now_rfc3339

log = logging.getLogger(__name__)

NAMESPACES: Final = GroupVersionResource("", "v1", "namespaces")
SERVICES: Final = GroupVersionResource("", "v1", "services")
CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
SERVICE_CIDRS: Final = GroupVersionResource("networking.k8s.io", "v1", "servicecidrs")
PRIORITY_CLASSES: Final = GroupVersionResource("scheduling.k8s.io", "v1", "priorityclasses")
SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


_PERIOD: Final = 60.0
_SERVICE_PERIOD: Final = 10.0


def _kept(lifecycle: Lifecycle, name: str, work: Hook, period: float) -> Hook:
    """Work that is done at the start, and over and over from then on."""

    async def start() -> None:
        try:
            await work()
        except StatusError as error:
            if error.reason not in ("Conflict", "Invalid"):
                raise
            # Another replica does the same, and may have come half way: its address of the service is taken, and the service not there yet.
            log.warning("%s: %s", name, error)
        lifecycle.background(name, every(period, name, work, level=logging.DEBUG, at_once=False))

    return start


@dataclass(frozen=True, slots=True)
class BootstrapConfig:
    service_network: str
    first_address: str
    advertise_address: str
    port: int
    authentication: Callable[[], dict[str, str]]  # data of extension-apiserver-authentication
    apart: str = ""  # what this process is called where core runs on its own


class Bootstrap:
    def __init__(self, client: Client, config: BootstrapConfig) -> None:
        self._client = client
        self._config = config
        self._namespaces_ready = asyncio.Event()
        address = f"[{config.advertise_address}]" if ":" in config.advertise_address else config.advertise_address
        self._identity = IdentityLease(
            client,
            socket.gethostname(),
            f"{address}:{config.port}",
            self._namespaces_ready,
            component="tetrapod-core" if config.apart else SERVER,
            apart=config.apart,
        )

    def register(self, lifecycle: Lifecycle) -> None:
        schemas = [*_data("flowschemas"), *([SERVICES_FLOW_SCHEMA] if self._config.apart else [])]
        flow_control = FlowControlObjects(self._client, {PRIORITY_LEVELS: _data("prioritylevelconfigurations"), FLOW_SCHEMAS: schemas})

        def keep(hook: str, work: Hook, period: float = _PERIOD) -> None:
            lifecycle.on_start(hook, _kept(lifecycle, hook, work, period))

        keep("start-system-namespaces-controller", self.namespaces)
        keep("start-cluster-authentication-info-controller", self.authentication_info)
        self._identity.register(lifecycle)
        lifecycle.on_start("scheduling/bootstrap-system-priority-classes", self.priority_classes)
        keep("priority-and-fairness-config-producer", flow_control.ensure)
        keep("bootstrap-controller", self.kubernetes_service, _SERVICE_PERIOD)
        keep("start-kubernetes-service-cidr-controller", self.service_cidr)

    async def namespaces(self) -> None:
        wanted = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SYSTEM_NAMESPACES]
        await self._ensure(NAMESPACES, wanted)
        self._namespaces_ready.set()

    async def authentication_info(self) -> None:
        """Where extension API servers read whom to believe; authorities change."""
        await self._namespaces_ready.wait()
        name = "extension-apiserver-authentication"
        data = self._config.authentication()
        found = await get_if_there(self._client, CONFIG_MAPS, "kube-system", name)
        if found is None:
            metadata = {"name": name, "namespace": "kube-system"}
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self._create(CONFIG_MAPS, "kube-system", obj)
            return
        if found.get("data") != data:
            await self._client.update(CONFIG_MAPS, "kube-system", {**found, "data": data})

    async def priority_classes(self) -> None:
        await self._ensure(PRIORITY_CLASSES, _data("priorityclasses"))

    async def service_cidr(self) -> None:
        obj = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": [self._config.service_network]},
        }
        await self._ensure(SERVICE_CIDRS, [obj])
        stored = await self._client.get(SERVICE_CIDRS, "", "kubernetes")
        if (stored.get("status") or {}).get("conditions"):
            return
        condition = {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": now_rfc3339(),
            "message": "Kubernetes default Service CIDR is ready",
        }
        status = {"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": "kubernetes"}}
        status["status"] = {"conditions": [condition]}
        manager = "kubernetes-service-cidr-controller"
        await self._client.patch(
            SERVICE_CIDRS, "", "kubernetes", status, type="apply", subresource="status", fieldManager=manager, force="true"
        )

    async def kubernetes_service(self) -> None:
        """The service that leads to the front doors, which say themselves where they are (generic/frontdoor)."""
        await self._namespaces_ready.wait()
        labels = {"component": "apiserver", "provider": "kubernetes"}
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
            "spec": {
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": self._config.port}],
                "clusterIP": self._config.first_address,
                "ipFamilyPolicy": "SingleStack",
                "sessionAffinity": "None",
                "type": "ClusterIP",
            },
        }
        if await get_if_there(self._client, SERVICES, "default", "kubernetes") is None:
            await self._create(SERVICES, "default", service)

    async def _ensure(self, gvr: GroupVersionResource, wanted: Sequence[Object]) -> None:
        """Create those cluster-scoped objects that are missing, all at once."""
        page = await self._client.list(gvr)
        present = {item["metadata"]["name"] for item in page.get("items") or ()}
        missing = [obj for obj in wanted if obj["metadata"]["name"] not in present]
        await asyncio.gather(*(self._create(gvr, "", obj) for obj in missing))

    async def _create(self, gvr: GroupVersionResource, namespace: str, obj: Object) -> None:
        try:
            await self._client.create(gvr, namespace, obj)
        except StatusError as error:
            if error.reason != "AlreadyExists":  # another replica was first
                raise


def _data(resource: str) -> list[Object]:
    found: dict[str, list[Object]] = orjson.loads(files(__package__).joinpath("objects.json").read_bytes())
    return found[resource]
