"""Handlers of `/openapi/v3`, the documents below it, and `/openapi/v2`.

Every method is handled like GET. A few encoded documents are cached for a minute after their last use.
Upstream: k8s.io/kube-openapi/pkg/handler3/handler.go and pkg/handler
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, TypeAlias

import orjson

from tetrapod.generic.http.negotiation.accept import Clause, parse_accept
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.generic.openapi import transfer
from tetrapod.generic.openapi.document_chunks import JsonForm, JsonFormV3, encode_v3, join_small
from tetrapod.generic.openapi.protobuf_v2 import ProtobufForm
from tetrapod.generic.openapi.protobuf_v3 import ProtobufFormV3
from tetrapod.generic.openapi.responses import BY_CODING, Content
from tetrapod.generic.openapi.source import DocumentSource, hash_of
from tetrapod.generic.openapi.v2 import swagger
from tetrapod.machinery.failure import result_of

Build: TypeAlias = Callable[[], Awaitable[Iterable[bytes] | None]]
_Key: TypeAlias = tuple[str, str, str]
_CACHE_SECONDS: Final = 60.0
_MAX_CACHED: Final = 4
_JSON: Final = "application/json"
_BY_ACCEPT: Final = (b"vary", b"Accept")
"""The Vary header of documents. Without it a cache (such as kubectl's) could return protobuf for a JSON request,
because both have the same URL.
"""
_NEGOTIATED: Final = (BY_CODING, _BY_ACCEPT)


class OpenAPIHandlers:
    """The handlers of one source of documents.

    `index` is for `/openapi/v3`, `document` for the paths below it, `v2` for `/openapi/v2`.
    """

    def __init__(self, source: DocumentSource, *, behind: bool = False) -> None:
        """Create the handlers.

        Args:
            source: the documents.
            behind: whether this server is behind an aggregator, which may request documents in parts (transfer.py).
                These are not cached.
        """
        self._source = source
        self._behind = behind
        self._cached: OrderedDict[_Key, tuple[float, list[bytes]]] = OrderedDict()
        self._eviction: asyncio.TimerHandle | None = None
        self._builds: dict[_Key, asyncio.Task[list[bytes] | None]] = {}
        self._build_lock = asyncio.Lock()  # documents can be large, so one is built at a time
        self._modified: dict[tuple[str, str], datetime] = {}

    async def index(self, request: Request) -> Response:
        """Serve `/openapi/v3`: the documents with their URLs."""
        hashes = await self._source.index()
        paths = {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"} for name, digest in hashes.items()}
        return Content([orjson.dumps({"paths": paths})], "text/plain; charset=utf-8", datetime.now(UTC)).answer(request)

    async def document(self, request: Request) -> Response:
        """Serve one OpenAPI v3 document, as JSON or protobuf.

        The response is a redirect if `?hash` is outdated, 404 for an unknown document, and 406 for other media types. A
        peer service that accepts `transfer.MEDIA_TYPE` gets the parts of the document instead.
        """
        name = request.path.removeprefix("/openapi/v3/")
        if self._behind and request.header(b"accept") == transfer.MEDIA_TYPE:
            return await transfer.hand_over(self._source, name)
        digest = (await self._source.index()).get(name)
        if digest is None:
            return Response(404, [])
        clauses = parse_accept(request.header(b"accept") or "*/*")
        if not clauses:
            return Response(200, [_BY_ACCEPT])
        media_type = self._media_type(clauses, "v3")
        if media_type is None:
            return Response(406, [_BY_ACCEPT])
        etag = f'"{digest}"'
        requested_hash = request.query().values.get("hash", "")
        if requested_hash and requested_hash != digest:
            headers: HeaderList = [
                (b"location", f"/openapi/v3/{name}?hash={digest}".encode()),
                (b"etag", etag.encode()),
                (b"content-type", media_type.encode()),
                _BY_ACCEPT,
            ]
            return Response(301, headers)
        content = Content(
            (), media_type, self._time_of(name, digest), etag, (_BY_ACCEPT, *(_immutable() if requested_hash else ()))
        )
        form = JsonFormV3() if media_type == _JSON else ProtobufFormV3()
        return await self._answer(request, content, name, digest, lambda: encode_v3(self._source, name, form))

    async def v2(self, request: Request) -> Response:
        """Serve the Swagger document of all resources, as JSON or protobuf; 406 for other media types."""
        media_type = self._media_type(parse_accept(request.header(b"accept") or "*/*"), "v2")
        if media_type is None:
            return Response(406, [*_NEGOTIATED])
        hashes = await self._source.index()
        digest = hash_of("v2", sorted(hashes.items()))
        form = JsonForm() if media_type == _JSON else ProtobufForm()
        content = Content((), media_type, self._time_of("v2", digest), f'"{digest}"', _NEGOTIATED, compressed=True)
        return await self._answer(request, content, "v2", digest, lambda: swagger(self._source, form))

    async def _answer(self, request: Request, content: Content, name: str, digest: str, build: Build) -> Response:
        """Return the response to a request for a document; 404 if `build` returns None.

        Args:
            request: the request.
            content: the document without its pieces. They are built only if the response has a body.
            name: the name of the document, for the cache.
            digest: the hash of the document, for the cache.
            build: encodes the document.
        """
        if (bodiless := content.without_body(request)) is not None:
            return bodiless
        pieces = await self._pieces(name, digest, content.media_type, build)
        return Response(404, []) if pieces is None else replace(content, pieces=pieces).answer(request)

    def _media_type(self, clauses: list[Clause], version: str) -> str | None:
        """Return JSON or protobuf for the most preferred clause that accepts one of them, or None.

        `version` is v2 or v3.

        As upstream, q=0 does not exclude a media type.
        """
        protobuf = f"com.github.proto-openapi.spec.{version}.v1.0+protobuf"
        for clause in clauses:
            if clause.type not in ("application", "*"):
                continue
            if clause.subtype in ("json", "*"):
                return _JSON
            if clause.subtype.replace("@", ".") == protobuf:
                return f"application/{protobuf}"
        return None

    async def _pieces(self, name: str, digest: str, media_type: str, build: Build) -> list[bytes] | None:
        key = (name, digest, media_type)
        if key in self._cached:
            self._cache(key, self._cached[key][1])
            return self._cached[key][1]
        task = self._builds.get(key)
        if task is None:  # not cancelled with the request, so that a later request finds the document in the cache
            task = self._builds[key] = asyncio.create_task(self._build(key, build))
            task.add_done_callback(lambda finished: self._built(key, finished))
        return await result_of(task)

    async def _build(self, key: _Key, build: Build) -> list[bytes] | None:
        async with self._build_lock:
            for old in [k for k in self._cached if (k[0], k[2]) == (key[0], key[2])]:
                del self._cached[old]
            document = await build()
            pieces = None if document is None else await join_small(document)
        if pieces is not None:
            self._cache(key, pieces)
        return pieces

    def _built(self, key: _Key, task: asyncio.Task[list[bytes] | None]) -> None:
        del self._builds[key]
        if not task.cancelled():
            task.exception()  # retrieve the exception: all requests may have been cancelled

    def _cache(self, key: _Key, pieces: list[bytes]) -> None:
        self._cached[key] = (time.monotonic(), pieces)
        self._cached.move_to_end(key)
        if len(self._cached) > _MAX_CACHED:
            self._cached.popitem(last=False)
        if self._eviction is None:
            self._eviction = asyncio.get_running_loop().call_later(_CACHE_SECONDS, self._evict)

    def _evict(self) -> None:
        self._eviction = None
        limit = time.monotonic() - _CACHE_SECONDS
        for key in [key for key, (used, _) in self._cached.items() if used <= limit]:
            del self._cached[key]
        if self._cached:
            oldest = min(used for used, _ in self._cached.values())
            self._eviction = asyncio.get_running_loop().call_later(oldest - limit, self._evict)

    def _time_of(self, name: str, digest: str) -> datetime:
        """Return when the document `name` was first served with the hash `digest`, for Last-Modified.

        The time for an earlier hash of the document is forgotten.
        """
        key = (name, digest)
        if key not in self._modified:
            for old in [k for k in self._modified if k[0] == name]:
                del self._modified[old]
            self._modified[key] = datetime.now(UTC)
        return self._modified[key]


def _immutable() -> HeaderList:
    """Return the cache headers of a URL that contains the hash of its document: it never changes.

    As upstream, it expires after a year.
    """
    now = datetime.now(UTC)
    expires = (
        now.replace(year=now.year + 1)
        if (now.month, now.day) != (2, 29)
        else now.replace(year=now.year + 1, month=3, day=1)
    )
    return [(b"cache-control", b"public, immutable"), (b"expires", f"{expires:%a, %d %b %Y %H:%M:%S} UTC".encode())]
