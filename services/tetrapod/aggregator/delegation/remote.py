"""The delegation chain over the network: each group goes to the service that has it, as the front proxy, identity in headers.

What a service says of itself (discovery, OpenAPI) is asked of it and kept until its ETag changes; while one is away its groups
stay known, and stale.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

import orjson

from tetrapod.aggregator.delegation.local import group_of
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.client.rest import RestClient
from tetrapod.generic.discovery import documents
from tetrapod.generic.discovery.negotiation import AGGREGATED
from tetrapod.generic.lifecycle.lifecycle import Lifecycle
from tetrapod.generic.lifecycle.unavailable import RETRY_SECONDS
from tetrapod.generic.observability.tracing import hop
from tetrapod.generic.observability.tracing.spans import current, start
from tetrapod.generic.openapi.handover import MEDIA_TYPE, received_parts
from tetrapod.generic.proxy import BackendError, BackendPool, ClientTLS
from tetrapod.generic.proxy.connection import BackendConnection
from tetrapod.generic.proxy.endpoint import parse_url
from tetrapod.generic.proxy.forward import forward
from tetrapod.generic.proxy.headers import DROPPED_FROM_PEERS, Unsendable, forwarded_headers, identity_headers
from tetrapod.generic.request import Handler, HeaderList, Request, Response
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.user import LOOPBACK
from tetrapod.machinery import status
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.types import groups as builtin_groups

log = logging.getLogger(__name__)

AUTH_GROUPS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io", "rbac.authorization.k8s.io"})
EXTENSIONS_GROUP: Final = "apiextensions.k8s.io"
_OWN_GROUP: Final = "apiregistration.k8s.io"
_ACCEPT: Final = "application/json;" + ";".join(f"{key}={value}" for key, value in AGGREGATED)
_SOON, _LATER, _PATIENCE = 0.5, 30.0, 5.0
_START_PATIENCE: Final = 20.0
"""After which a server is ready though it does not know what a service has: better the others than none."""
_STREAM_PATIENCE: Final = 30.0  # for the next piece


def side_of(group: str) -> str:
    """Which service has a group; what is not built in are custom resources."""
    if group in AUTH_GROUPS:
        return "auth"
    if group in _BUILTIN and group != EXTENSIONS_GROUP:
        return "core"
    return "extensions"


_BUILTIN: Final = frozenset(found.name for found in builtin_groups())


class RemoteSide:
    """One of the services: a handler of requests, a `DiscoverySource`, and by `documents` a source of OpenAPI documents."""

    def __init__(self, name: str, pool: BackendPool, url: str, tls: ClientTLS) -> None:
        self.name = name
        self._pool = pool
        self._endpoint, _, _ = parse_url(url, tls)
        self._items: dict[bool, list[Object]] = {True: [], False: []}
        self._etags: dict[bool, str] = {}
        self._builtin = [found for found in builtin_groups() if found.name != _OWN_GROUP and side_of(found.name) == name]
        self.generation = 0
        self.known = asyncio.Event()
        """What it serves is known, be it what it was."""
        self.documents = RemoteDocuments(self)

    async def handle(self, request: Request) -> Response:
        try:
            if current() is not None:
                return await self._traced(request)
            audit = request.audit
            if audit is None:
                return await forward(self._pool, self._endpoint, request, dropped=DROPPED_FROM_PEERS)
            from tetrapod.generic.audit import findings

            headers = forwarded_headers(request.headers, request.user, request.remote, request.audit_id) + findings.request_header(audit)
            response = await forward(self._pool, self._endpoint, request, headers=headers, dropped=DROPPED_FROM_PEERS)
            findings.take_response(audit, request, response)
            return response
        except (BackendError, Unsendable) as error:
            log.info("%s cannot be reached: %s", self.name, error)
            undone = isinstance(error, BackendError) and error.unsent
            raise status.service_unavailable(f"error trying to reach service: {error}", RETRY_SECONDS if undone else 0) from None

    async def _traced(self, request: Request) -> Response:
        """Handle a request in a span, to which the spans of the service are added."""
        from tetrapod.generic.audit import findings

        with start(f"service {self.name}") as step:
            headers = forwarded_headers(request.headers, request.user, request.remote, request.audit_id) + hop.request_headers(step)
            audit = request.audit
            if audit is not None:
                headers += findings.request_header(audit)
            response = await forward(
                self._pool, self._endpoint, request, headers=headers, target=hop.target(request, step), dropped=DROPPED_FROM_PEERS
            )
            if audit is not None:
                findings.take_response(audit, request, response)
            hop.graft(response, step)
            return response

    async def get(self, target: str, accept: str = "application/json", etag: str = "") -> tuple[int, HeaderList, bytes]:
        """Send a GET with the identity of the aggregator.

        Raises:
            BackendError: the request failed.
            TimeoutError: the service did not respond in time.
        """
        async with asyncio.timeout(_PATIENCE):
            connection = await self._ask(target, accept, etag)
            try:
                return connection.status, connection.headers, await connection.read(256 << 20)
            except BaseException:
                connection.close()
                raise

    async def stream(self, target: str, accept: str) -> AsyncIterator[bytes]:
        """Send a GET and yield the chunks of the response body as they arrive; nothing for a 404."""
        async with asyncio.timeout(_PATIENCE):
            connection = await self._ask(target, accept)
        try:
            if connection.status not in (200, 404):
                raise BackendError(f"status {connection.status} of {target}")
            while True:
                async with asyncio.timeout(_STREAM_PATIENCE):
                    chunk = await connection.chunk()
                if not chunk:
                    return
                if connection.status == 200:
                    yield chunk
        finally:
            if not connection.complete:
                connection.close()

    async def _ask(self, target: str, accept: str, etag: str = "") -> BackendConnection:
        headers: HeaderList = [(b"accept", accept.encode()), *identity_headers(LOOPBACK)]
        if etag:
            headers.append((b"if-none-match", etag.encode()))
        return await self._pool.exchange(self._endpoint, "GET", target, headers)

    # --- DiscoverySource

    def core_versions(self) -> list[str]:
        return [v for found in self._builtin if not found.name for v in found.versions]

    def groups(self) -> list[Object]:
        """Return the built-in groups of the service. Groups of custom resources are registered one by one."""
        return [documents.api_group(found.name, found.versions, typed=False) for found in self._builtin if found.name]

    def resources(self, group: str, version: str) -> Object | None:
        return None  # below a version the service itself is asked

    def aggregated(self, core: bool) -> list[Object]:
        return self._items[core]

    async def follow(self) -> None:
        """Keep the aggregated documents as the service has them."""
        while True:
            try:
                for core in (True, False):
                    await self._refresh(core)
                self.known.set()
                wait = _SOON if self.name == "extensions" else _LATER
            except (BackendError, TimeoutError, ValueError, KeyError) as error:
                log.debug("discovery of %s: %s", self.name, error)
                wait = _SOON
            await asyncio.sleep(wait)

    async def _refresh(self, core: bool) -> None:
        code, headers, body = await self.get("/api" if core else "/apis", _ACCEPT, self._etags.get(core, ""))
        if code == 304:
            return
        if code != 200:
            raise ValueError(f"status {code}")
        self._items[core] = orjson.loads(body)["items"]
        self._etags[core] = next((v.decode("latin-1") for k, v in headers if k == b"etag"), "")
        self.generation += 1


class RemoteDocuments:
    """OpenAPI v3 documents of a service, handed over in parts. Implements `DocumentSource`.

    What a service that cannot be reached has is not known (`index`); one that breaks off fails the whole document, which is not kept.
    """

    def __init__(self, side: RemoteSide) -> None:
        self._side = side

    async def index(self) -> Mapping[str, str]:
        try:
            code, _, body = await self._side.get("/openapi/v3")
        except (BackendError, TimeoutError):
            return {}
        if code != 200:
            return {}
        paths = orjson.loads(body)["paths"]
        found = {}
        for name, entry in paths.items():
            if self._owns(name):
                found[name] = parse_qs(urlsplit(entry["serverRelativeURL"]).query).get("hash", [""])[0]
        return found

    def _owns(self, name: str) -> bool:
        parts = name.split("/")
        if parts[0] == "api":
            return self._side.name == "core"
        if parts[0] == "apis" and len(parts) > 1:
            return side_of(parts[1]) == self._side.name
        return parts[0] not in ("version",)

    async def parts(self, name: str) -> AsyncIterator[Object]:
        if not self._owns(name):
            return
        try:
            async for part in received_parts(self._side.stream(f"/openapi/v3/{quote(name)}", MEDIA_TYPE)):
                yield part
        except (BackendError, TimeoutError, ValueError) as error:
            log.warning("OpenAPI document %s of %s: %s", name, self._side.name, error or type(error).__name__)
            raise status.service_unavailable(f"error trying to reach service: {error}") from None


class RemoteDelegation:
    """`front` is the aggregator's director, set once it is made: its own controllers go through it."""

    def __init__(self, server: GenericAPIServer, sides: Mapping[str, RemoteSide]) -> None:
        self._server = server
        self._sides = sides
        self.front: Handler = server.director

    async def handle(self, request: Request) -> Response:
        group = group_of(request)
        if group is None:
            if request.path.startswith(("/.well-known/openid-configuration", "/openid/")):
                return await self._sides["auth"].handle(request)
            return await self._server.director(request)
        if group == _OWN_GROUP:
            return await self._server.director(request)
        return await self._sides[side_of(group)].handle(request)

    def client(self, user_agent: str) -> RestClient:
        async def front(request: Request) -> Response:
            return await self.front(request)

        return in_process_client(front, user_agent)

    def register(self, lifecycle: Lifecycle) -> None:
        async def follow() -> None:
            """Whoever finds this server ready finds everything in discovery, unless a service is away for long."""
            for side in self._sides.values():
                lifecycle.background(f"discovery/{side.name}", side.follow())
            with suppress(TimeoutError):
                async with asyncio.timeout(_START_PATIENCE):
                    await asyncio.gather(*(side.known.wait() for side in self._sides.values()))

        lifecycle.on_start("start-service-discovery", follow)
