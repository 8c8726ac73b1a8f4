"""Core with its admission plugins over an in-memory store, and a kubelet with an untrusted certificate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from integration.http.conftest import Serve, pki, serve, tls
from integration.registry.conftest import backend, storages
from tetrapod.core.admission.plugins import plugins
from tetrapod.core.service import CoreConfig, CoreService
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.client.interface import Client
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.generic.webhook.services import StorageServiceResolver
from tetrapod.machinery.gvk import GroupVersionResource, Object

__all__ = ["Serve", "backend", "pki", "serve", "storages", "tls"]

NS = "default"


def v1(resource: str) -> GroupVersionResource:
    return GroupVersionResource("", "v1", resource)


@dataclass
class Core:
    client: Client
    director: Handler
    service: CoreService

    async def create(self, resource: str, kind: str, name: str, **parts: object) -> Object:
        obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **parts}
        return await self.client.create(v1(resource), "" if kind in ("Node", "Namespace") else NS, obj)

    async def node(self, name: str, port: int, *features: str) -> None:
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "declaredFeatures": list(features),
        }
        await self.create("nodes", "Node", name, status=status)

    async def pod(self, name: str, **spec: object) -> Object:
        return await self.create("pods", "Pod", name, spec={"containers": [{"name": "c", "image": "nginx"}], **spec})


Kubelet = Callable[[Handler], Awaitable[None]]


@pytest.fixture
async def core(storages: StorageFactory, allow_all: Authorizer) -> AsyncIterator[Core]:
    lifecycle = Lifecycle()

    async def director(request: Request) -> Response:
        return await server.director(request)

    webhooks = WebhookClient(StorageServiceResolver(storages, by_endpoints=False))
    dependencies = PluginDependencies(
        storages, allow_all, in_process_client(director, "kube-apiserver"), lifecycle.background, webhooks
    )
    server = GenericAPIServer("core", storages, Chain(plugins(dependencies, (), ())), lifecycle)

    async def sign(*_: object) -> str:
        return "token"

    client = in_process_client(director, "kube-apiserver")
    config = CoreConfig("10.0.0.0/24", "30000-32767", "127.0.0.1", 6443, "CA", dict, controllers=("serviceaccount",))
    service = CoreService(server, config, client, in_process_client(director, "controllers"), Rest(), sign, {})
    await client.create(v1("namespaces"), "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    await client.create(
        v1("serviceaccounts"), NS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    )
    yield Core(client, director, service)
    await service.backends.close()


@pytest.fixture
def allow_all() -> Authorizer:
    class Everything:
        async def authorize(self, *_: object) -> object:
            raise AssertionError("nothing here asks")

    return Everything()  # type: ignore[return-value]
