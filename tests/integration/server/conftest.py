"""A generic server without resources, called like its filters do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tetrapod.generic.admission.chain import Chain
from tetrapod.generic.http.negotiation.documents import write_status
from tetrapod.generic.http.request import BytesBody, Request, Response
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.server.server import GenericAPIServer
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory
from tetrapod.generic.storage.sqlite.backend import SqliteBackend
from tetrapod.machinery import requestinfo
from tetrapod.machinery.status import StatusError

Call = Callable[..., Awaitable[Response]]


@pytest.fixture
async def server() -> AsyncIterator[GenericAPIServer]:
    backend = SqliteBackend(":memory:")
    storage = CachingStorageFactory(backend)
    yield GenericAPIServer("test", storage, Chain([]), Lifecycle())
    await storage.close()
    await backend.close()


@pytest.fixture
def call(server: GenericAPIServer) -> Call:
    async def ask(
        method: str,
        target: str,
        body: bytes = b"",
        *,
        accept: str = "*/*",
        agent: str = "",
        warnings: list[str] | None = None,
    ) -> Response:
        path, _, query = target.partition("?")
        request = Request(
            method,
            path,
            query_string=query,
            headers=[(b"accept", accept.encode()), (b"user-agent", agent.encode())],
            body=BytesBody(body),
        )
        request.info = requestinfo.parse(method, path, query)
        request.warnings = warnings if warnings is not None else []
        try:
            return await server.director(request)
        except StatusError as error:
            return write_status(request, error)

    return ask
