"""Documents that a service passes to the aggregator: streamed, and used only if they are complete."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from support.openapi import document_of
from tetrapod.aggregator.delegation.peer import PeerService
from tetrapod.generic.http.request import Request, StreamResponse
from tetrapod.generic.openapi.handlers import OpenAPIHandlers
from tetrapod.generic.proxy import BackendPool, ClientTLS
from tetrapod.machinery.status import StatusError

NAME = "apis/example.com/v1"
INDEX = json.dumps({"paths": {NAME: {"serverRelativeURL": f"/openapi/v3/{NAME}?hash=ABC"}}}).encode()
PARTS = [
    {
        "openapi": "3.0.0",
        "info": {},
        "paths": {f"/apis/example.com/v1/things{i}": {}},
        "components": {"schemas": {f"Thing{i}": {}}},
    }
    for i in range(3)
]


class Service:
    """A service that answers as extensions does, and ends its response after `lines` of the document."""

    def __init__(self) -> None:
        self.lines = len(PARTS)
        self.asked: list[bytes] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1]
                if path == b"/openapi/v3":
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(INDEX), INDEX))
                    continue
                self.asked.append(path)
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for part in PARTS[: self.lines]:
                    line = json.dumps(part).encode() + b"\n"
                    writer.write(b"%x\r\n%b\r\n" % (len(line), line))
                if self.lines < len(PARTS):
                    return
                writer.write(b"0\r\n\r\n")
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def running(service: Service) -> AsyncIterator[PeerService]:
    server = await asyncio.start_server(service.answer, "127.0.0.1")
    pool = BackendPool()
    try:
        yield PeerService("extensions", pool, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", ClientTLS())
    finally:
        await pool.close()
        server.close()
        await server.wait_closed()


async def test_a_document_is_assembled_from_the_parts_of_the_service() -> None:
    service = Service()
    async with running(service) as side:
        assert await side.documents.index() == {NAME: "ABC"}
        document = await document_of(side.documents, NAME)
        assert sorted(document["components"]["schemas"]) == ["Thing0", "Thing1", "Thing2"]
        # a document of core, which is not requested from extensions
        assert await document_of(side.documents, "apis/apps/v1") is None
        assert service.asked == [f"/openapi/v3/{NAME}".encode()]


async def test_an_incomplete_document_is_rejected_and_requested_again() -> None:
    service = Service()
    async with running(service) as side:
        handlers = OpenAPIHandlers(side.documents)
        service.lines = 2
        for path, handler in (("/openapi/v2", handlers.v2), (f"/openapi/v3/{NAME}", handlers.document)):
            with pytest.raises(StatusError) as rejected:
                await handler(Request("GET", path))
            assert rejected.value.code == 503
        service.lines = len(PARTS)
        answer = await handlers.v2(Request("GET", "/openapi/v2"))
        assert answer.status == 200
        etag = next(value for name, value in answer.headers if name == b"etag")
        asked = len(service.asked)
        assert (await handlers.v2(Request("GET", "/openapi/v2", headers=[(b"if-none-match", etag)]))).status == 304
        fresh = OpenAPIHandlers(side.documents)
        assert (await fresh.v2(Request("GET", "/openapi/v2", headers=[(b"if-none-match", etag)]))).status == 304
        assert len(service.asked) == asked, "who has it already is answered without its being made"
        assert not isinstance(answer, StreamResponse)
        assert sorted(json.loads(answer.body)["definitions"]) == ["Thing0", "Thing1", "Thing2"]
