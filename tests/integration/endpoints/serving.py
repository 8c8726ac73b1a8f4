"""A server with a few resources over an in-memory store, called like its filters do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from support.calls import Answer, answer_of, request_of
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.endpoints.handler import ResourceHandler
from tetrapod.generic.endpoints.router import GroupVersionRouter
from tetrapod.generic.endpoints.scale import ScalePaths
from tetrapod.generic.http.negotiation.documents import write_status
from tetrapod.generic.http.request import Handler, Request, Response, StreamResponse
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.store import Store
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.cacher import CachingStorageFactory
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.sqlite.backend import SqliteBackend
from tetrapod.machinery import types
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
JSON = "application/json"
WIDGET_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "color": {"type": "string", "default": "blue"},
                "replicas": {"type": "integer"},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


class DeploymentStrategy(Strategy):
    has_status = True
    initial_status = {}
    generation = ("spec",)


class StatusStrategy(Strategy):
    def prepare_for_update(self, ctx: Any, new: Object, old: Object) -> None:
        new["spec"] = old["spec"]

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",)]


class LeaseStrategy(Strategy):
    allow_create_on_update = True


class ClusterStrategy(Strategy):
    namespaced = False


class Echo(Rest):
    """A handler of the paths below it."""

    async def connect(self, ctx: Any, name: str, options: Any, request: Request) -> Response:
        return Response(200, [], f"{request.method} {name} {options.get('path', '')}".encode())


def definition(group: str, resource: str, kind: str, strategy: Strategy, **more: Any) -> ResourceDefinition:
    return ResourceDefinition(
        group=group,
        resource=resource,
        kind=kind,
        singular=kind.lower(),
        namespaced=strategy.namespaced,
        versions=more.pop("versions", ("v1",)),
        storage_version="v1",
        storage_prefix=f"{group}/{resource}" if "." in group else resource,
        verbs=more.pop("verbs", ALL_VERBS),
        schema=more.pop("schema", lambda version: types.schema_for(GroupVersionKind(group, version, kind))),
        strategy=strategy,
        **more,
    )


def definitions() -> list[ResourceDefinition]:
    connection = Subresource("proxy", ("create", "delete", "get", "patch", "update"), rest=Echo())
    return [
        definition("", "configmaps", "ConfigMap", Strategy(), subresources=(connection,)),
        definition("", "nodes", "Node", ClusterStrategy(), deprecated={"v1": "v1 Node is old"}),
        definition("coordination.k8s.io", "leases", "Lease", LeaseStrategy()),
        definition(
            "apps",
            "deployments",
            "Deployment",
            DeploymentStrategy(),
            subresources=(
                Subresource("status", ("get", "patch", "update"), strategy=StatusStrategy()),
                Subresource(
                    "scale",
                    ("get", "patch", "update"),
                    GroupVersionKind("autoscaling", "v1", "Scale"),
                    rest=ScalePaths(),
                ),
            ),
        ),
    ]


def widgets() -> ResourceDefinition:
    schema = build(WIDGET_SCHEMA)
    return definition(
        "example.com",
        "widgets",
        "Widget",
        Strategy(),
        versions=("v1", "v2"),
        schema=lambda version: schema,
        custom=True,
    )


class Collector:
    """A StreamWriter whose lines can be awaited."""

    def __init__(self) -> None:
        self._data = b""
        self._changed = asyncio.Event()
        self.drained = 0

    def write(self, data: bytes) -> None:
        self._data += data
        self._changed.set()

    def buffered(self) -> int:
        return 0

    async def drain(self) -> None:
        self.drained += 1

    closed = False

    async def wait_closed(self) -> None:
        await asyncio.Event().wait()

    @property
    def data(self) -> bytes:
        return self._data

    async def events(self, count: int) -> list[Any]:
        async with asyncio.timeout(5):
            while self._data.count(b"\n") < count:
                self._changed.clear()
                await self._changed.wait()
        return [orjson.loads(line) for line in self._data.splitlines()[:count]]


class Api:
    def __init__(self, handlers: dict[tuple[str, str], Handler]) -> None:
        self._handlers = handlers

    async def request(self, method: str, target: str, body: Any = None, **headers: str) -> Request:
        return request_of(method, target, body, UserInfo("someone"), **headers)

    async def respond(self, request: Request) -> Response:
        info = request.info
        assert info is not None
        try:
            return await self._handlers[info.api_group, info.api_version](request)
        except StatusError as error:
            return write_status(request, error)

    async def __call__(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        request = await self.request(method, target, body, **headers)
        response = await self.respond(request)
        data = response.body
        if isinstance(response, StreamResponse):
            collector = Collector()
            await response.run(collector)
            data = collector.data
        return answer_of(request, response, data)

    @asynccontextmanager
    async def watch(self, target: str, **headers: str) -> AsyncIterator[Collector]:
        response = await self.respond(await self.request("GET", target, **headers))
        assert isinstance(response, StreamResponse), response.body
        collector = Collector()
        task = asyncio.ensure_future(response.run(collector))
        try:
            yield collector
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def serving(*plugins: Plugin, authorizer: Authorizer | None = None) -> AsyncIterator[Api]:
    backend = SqliteBackend(":memory:")
    factory = CachingStorageFactory(backend)
    chain = Chain(plugins)
    handlers: dict[tuple[str, str], Handler] = {}
    routers: dict[tuple[str, str], GroupVersionRouter] = {}

    def store(of: ResourceDefinition) -> Store:
        api_version = of.gvk(of.storage_version).api_version
        return Store(of, factory.resource(StorageConfig(of.storage_prefix, api_version, of.kind, of.namespaced)))

    for one in definitions():
        router = routers.setdefault((one.group, "v1"), GroupVersionRouter(one.group, "v1", chain, authorizer))
        router.install(one, store(one))
        handlers[one.group, "v1"] = router.handle
    widget = widgets()
    widget_store = store(widget)
    for version in widget.versions:
        handlers["example.com", version] = ResourceHandler(
            widget, version, widget_store, admission=chain, authorizer=authorizer
        )
    try:
        yield Api(handlers)
    finally:
        await factory.close()
        await backend.close()
