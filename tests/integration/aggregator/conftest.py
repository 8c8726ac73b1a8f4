"""An aggregator over an in-memory store with real sockets, and an external API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest

from integration.http.conftest import Serve, pki, serve, tls
from support.waiting import eventually
from tetrapod.aggregator.backends import ProxyCertificate
from tetrapod.aggregator.service import AggregatorConfig, AggregatorService
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.certificates import Pki
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.client.rest import RestClient
from tetrapod.generic.http.request import Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.http.tls import ServingTLS
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.status import SpecStatusStrategy, StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory
from tetrapod.generic.storage.sqlite.backend import SqliteBackend
from tetrapod.machinery import requestinfo
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.user import UserInfo

__all__ = ["pki", "serve", "tls"]

AGGREGATED = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ALICE = UserInfo("alice", groups=("staff",), extra={"example.com/key": ("v",)})


class World:
    """The aggregator, a client of it, and its address."""

    def __init__(self, service: AggregatorService, client: RestClient, front: HttpServer) -> None:
        self.service, self.client, self.front = service, client, front

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        status, _, body = await self.service.pool.fetch(
            "GET", f"http://127.0.0.1:{self.front.port}{path}", headers=headers
        )
        try:
            return status, orjson.loads(body)
        except ValueError:
            return status, body

    async def until(self, what: Callable[[], Awaitable[bool]]) -> None:
        await eventually(what)

    async def reason(self, name: str) -> str:
        _, found = await self.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")
        conditions = (found.get("status") or {}).get("conditions") or [{}]
        return str(conditions[0].get("reason"))


@pytest.fixture
def rejecting() -> bool:
    """Whether redirects of backends are rejected; tests override it."""
    return True


@pytest.fixture
def routing() -> bool:
    """Whether requests go to endpoints instead of the Service's address."""
    return False


@pytest.fixture
async def world(serve: Serve, pki: Pki, rejecting: bool, routing: bool) -> AsyncIterator[World]:
    backend = SqliteBackend(":memory:")
    storage = CachingStorageFactory(backend)
    lifecycle = Lifecycle()
    server = GenericAPIServer("test", storage, Chain([]), lifecycle)
    services = SpecStatusStrategy()
    services.generation = None
    placeholder: dict[str, Strategy | Rest] = {"status": StatusStrategy(services), "proxy": Rest()}
    server.install([builtin("", "services", services, storage_prefix="services/specs", subresources=placeholder)])
    server.install([builtin("discovery.k8s.io", "endpointslices", Strategy())])

    async def director(request: Request) -> Response:
        return await service.director(request)

    client = in_process_client(director, "kube-apiserver")
    certificate, key = map(str, pki.front_proxy_client)
    config = AggregatorConfig(routing, ProxyCertificate(certificate, key), rejecting)
    service = AggregatorService(server, config, client)
    service.register(lifecycle)

    async def front(request: Request) -> Response:
        request.info = requestinfo.parse(request.method, request.path, request.query_string)
        request.user = ALICE
        return await service.director(request)

    listening = await serve(front)
    await lifecycle.start()
    yield World(service, client, listening)
    await lifecycle.stop()
    await storage.close()
    await backend.close()


class External:
    """An external API server with one group, in the role of a server in another language."""

    GROUP = "wardle.example.com"

    def __init__(self) -> None:
        self.port = 0
        self.broken = False
        self.endless = False
        self.cors = False
        self.openapi = b'{"openapi": "3.0.0", "info": {"title": "Wardle"}, "paths": {}}'
        self.swagger = b""
        self.failing: dict[str, Response] = {}  # the responses to requests for these paths
        self.redirect = b""
        self.seen: list[Request] = []

    async def handle(self, request: Request) -> Response:
        self.seen.append(request)
        if request.path in self.failing:
            return self.failing[request.path]
        if self.broken:
            return Response(500, [], b"broken")
        if self.endless:
            return StreamResponse(200, [], self._never_ends)
        if request.path == "/apis":
            return self._json(self._aggregated(), AGGREGATED)
        if self.redirect:
            return Response(307, [(b"location", self.redirect)], b"")
        if request.path.endswith("/watch"):
            return StreamResponse(200, [], self._watch)
        if self.swagger and request.path.startswith("/openapi/"):
            found = request.path == "/openapi/v2"
            return Response(200 if found else 404, [(b"content-type", b"application/json")], self.swagger)
        if request.path == "/openapi/v3":
            names = {
                f"apis/{self.GROUP}/v1": "?hash=ABC",
                f"apis/{self.GROUP}": "?hash=DEF",
                f"apis/{self.GROUP}/v2": "",
                "api/v1": "",
            }
            return self._json(
                {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}{query}"} for name, query in names.items()}}
            )
        if request.path.startswith("/openapi/v3/"):
            return Response(200, [(b"content-type", b"application/json")], self.openapi)
        headers = {k.decode(): v.decode() for k, v in request.headers}
        seen = {"path": request.path, "target": request.raw_path, "query": request.query_string, "headers": headers}
        answer = self._json({**seen, "certificate": bool(request.peer_certificates)})
        if self.cors:
            answer.headers.append((b"access-control-allow-origin", b"*"))
        return answer

    @staticmethod
    def _json(document: Object, media_type: bytes = b"application/json") -> Response:
        return Response(200, [(b"content-type", media_type)], orjson.dumps(document))

    def _aggregated(self) -> Object:
        kind = {"group": self.GROUP, "version": "v1", "kind": "Flunder"}
        resource = {"resource": "flunders", "responseKind": kind, "scope": "Namespaced", "verbs": ["get"]}
        versions = [{"version": "v1", "resources": [resource], "freshness": "Current"}]
        return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": self.GROUP}, "versions": versions}]}

    @staticmethod
    async def _never_ends(writer: StreamWriter) -> None:
        writer.write(b"[")
        await asyncio.Event().wait()

    @staticmethod
    async def _watch(writer: StreamWriter) -> None:
        for n in range(3):
            writer.write(b'{"n":%d}\n' % n)
            await asyncio.sleep(0)


@pytest.fixture
async def external(serve: Serve, tls: ServingTLS) -> External:
    external = External()
    external.port = (await serve(external.handle, tls)).port
    return external
