"""Large responses are compressed once on their way through the services."""

from __future__ import annotations

import gzip

import pytest

from support.openapi import BufferWriter
from tetrapod.generic.filters.compression import THRESHOLD, with_compression
from tetrapod.generic.http.request import Request, Response, StreamResponse, StreamWriter
from tetrapod.machinery.requestinfo import parse

BODY = b"x" * 2 * THRESHOLD


async def streamed(request: Request) -> Response:
    async def run(writer: StreamWriter) -> None:
        writer.write(BODY)

    return StreamResponse(200, [(b"content-type", b"application/json")], run)


async def whole(request: Request) -> Response:
    return Response(200, [(b"content-type", b"application/json")], BODY)


def listing() -> Request:
    request = Request("GET", "/api/v1/pods", headers=[(b"accept-encoding", b"gzip")])
    request.info = parse("GET", "/api/v1/pods")
    return request


@pytest.mark.parametrize("handler", [streamed, whole])
@pytest.mark.parametrize("times", [1, 2])
async def test_an_answer_that_comes_through_several_servers_is_compressed_once(handler: object, times: int) -> None:
    """core compresses a list, and the aggregator passes it on unchanged."""
    for _ in range(times):
        handler = with_compression(handler)  # type: ignore[arg-type]
    response = await handler(listing())  # type: ignore[operator]
    assert [value for name, value in response.headers if name == b"content-encoding"] == [b"gzip"]
    body = response.body
    if isinstance(response, StreamResponse):
        kept = BufferWriter()
        await response.run(kept)
        body = b"".join(kept.parts)
    assert gzip.decompress(body) == BODY


async def test_the_list_of_a_deleted_collection_is_compressed() -> None:
    request = Request("DELETE", "/api/v1/namespaces/a/pods", headers=[(b"accept-encoding", b"gzip")])
    request.info = parse("DELETE", "/api/v1/namespaces/a/pods")
    response = await with_compression(streamed)(request)
    assert (b"content-encoding", b"gzip") in response.headers


async def test_a_body_of_exactly_the_threshold_is_not_compressed() -> None:
    async def exact(request: Request) -> Response:
        return Response(200, [], b"x" * THRESHOLD)

    response = await with_compression(exact)(listing())
    assert response.body == b"x" * THRESHOLD
