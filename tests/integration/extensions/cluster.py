"""The extensions service over an in-memory store, called like its filters do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson

from support import definitions
from support.calls import Answer, answer_of, request_of
from tetrapod.extensions.service import ExtensionsService
from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.http.negotiation.documents import write_status
from tetrapod.generic.http.request import StreamResponse
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.storage.cacher import CachingStorageFactory
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.generic.webhook.services import StorageServiceResolver
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import LOOPBACK

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "example.com"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


def definition(kind: str = "Widget", *versions: Object, **more: Any) -> Object:
    """Return a definition in the group of these tests."""
    return definitions.definition(GROUP, kind, *versions, **more)


class Cluster:
    def __init__(self, server: GenericAPIServer, service: ExtensionsService, backend: SqliteBackend) -> None:
        self.server, self.service, self.backend = server, service, backend

    async def call(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        request = request_of(method, target, body, LOOPBACK, **{"content_type": "application/json", **headers})
        try:
            response = await self.server.director(request)
        except StatusError as error:
            response = write_status(request, error)
        if isinstance(response, StreamResponse):
            raise TypeError("a stream: use watch")
        return answer_of(request, response, response.body)

    async def get(self, target: str, **headers: str) -> Answer:
        return await self.call("GET", target, **headers)

    async def create(self, target: str, obj: Object) -> Object:
        answer = await self.call("POST", target, obj)
        assert answer.status == 201, answer.body
        created: Object = answer.json
        return created

    async def define(self, crd: Object) -> Object:
        """Create a definition and wait until it is served."""
        await self.create(CRDS, crd)
        return await self.until(f"{CRDS}/{crd['metadata']['name']}", established)

    async def until(self, target: str, holds: Callable[[Object], bool], seconds: float = 5.0) -> Object:
        """Wait until the object meets a condition, and return it.

        It is read again after each change of a definition.
        """
        changed = asyncio.Event()
        self.service.crds.listeners.append(lambda old, new: changed.set())
        async with asyncio.timeout(seconds):
            while True:
                changed.clear()
                answer = await self.get(target)
                if holds(answer.json if answer.body.startswith(b"{") else {"status": {}, "code": answer.status}):
                    found: Object = answer.json
                    return found
                await changed.wait()

    @asynccontextmanager
    async def watch(self, target: str) -> AsyncIterator[Watching]:
        request = request_of("GET", target, None, LOOPBACK)
        response = await self.server.director(request)
        assert isinstance(response, StreamResponse), response.body
        watching = Watching()
        task = asyncio.ensure_future(response.run(watching))
        task.add_done_callback(lambda _: watching.ended.set())
        try:
            yield watching
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class Watching:
    """A StreamWriter whose events can be awaited. The server may write an event in pieces."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[Object] = asyncio.Queue()
        self._incomplete = b""
        self.ended = asyncio.Event()

    def write(self, data: bytes) -> None:
        *lines, self._incomplete = (self._incomplete + data).split(b"\n")
        for line in lines:
            self._events.put_nowait(orjson.loads(line))

    async def event(self) -> Object:
        async with asyncio.timeout(5):
            return await self._events.get()

    def buffered(self) -> int:
        return 0

    async def drain(self) -> None: ...

    closed = False

    async def wait_closed(self) -> None:
        await asyncio.Event().wait()


def established(crd: Object) -> bool:
    return has_condition(crd, "Established", "True")


def has_condition(crd: Object, type_: str, status: str) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(c["type"] == type_ and c["status"] == status for c in conditions)


@asynccontextmanager
async def running(beside: Cluster | None = None) -> AsyncIterator[Cluster]:
    """Run the service. `beside` is another replica over the same store."""
    backend = SqliteBackend(":memory:") if beside is None else beside.backend
    storages = CachingStorageFactory(backend)
    lifecycle = Lifecycle()
    server = GenericAPIServer("extensions", storages, Chain([]), lifecycle)
    client = in_process_client(server.director, "kube-apiserver")
    webhooks = WebhookClient(StorageServiceResolver(storages, by_endpoints=True))
    service = ExtensionsService(storages, Chain([]), lifecycle, client, webhooks)
    server.install(service.definitions)
    server.fallback = service.handler
    service.register()
    await lifecycle.start()
    try:
        yield Cluster(server, service, backend)
    finally:
        await lifecycle.stop()
        await webhooks.close()
        await storages.close()
        if beside is None:
            await backend.close()
