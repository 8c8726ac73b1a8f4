"""Tests of OpenAPI over HTTP: hashes, conditional requests, ranges, media types."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from support.openapi import BufferWriter
from tetrapod.generic.http.request import Request, Response, StreamResponse
from tetrapod.generic.openapi.handlers import OpenAPIHandlers
from tetrapod.generic.openapi.source import BuiltinSource

V3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


@pytest.fixture
def handlers(source: BuiltinSource) -> OpenAPIHandlers:
    return OpenAPIHandlers(source)


def get(path: str, query: str = "", method: str = "GET", **headers: str) -> Request:
    listed = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request(method, path, query_string=query, headers=listed)


def header(response: Response, name: bytes) -> str:
    return next((value.decode() for key, value in response.headers if key == name), "")


async def body_of(response: Response) -> bytes:
    if not isinstance(response, StreamResponse):
        return response.body
    writer = BufferWriter()
    await response.run(writer)
    return b"".join(writer.parts)


async def test_the_index_leads_to_immutable_documents(handlers: OpenAPIHandlers) -> None:
    index = await handlers.index(get("/openapi/v3"))
    assert header(index, b"content-type") == "text/plain; charset=utf-8"
    assert header(index, b"etag") == ""
    url = json.loads(index.body)["paths"]["apis/apps"]["serverRelativeURL"]
    path, _, query = url.partition("?")
    document = await handlers.document(get(path, query))
    assert document.status == 200
    assert header(document, b"cache-control") == "public, immutable"
    assert header(document, b"expires").endswith(" UTC")
    assert header(document, b"etag") == f'"{query.removeprefix("hash=")}"'


async def test_a_wrong_hash_redirects_and_an_empty_one_does_not(handlers: OpenAPIHandlers) -> None:
    moved = await handlers.document(get("/openapi/v3/apis/apps", "hash=ABC&timeout=32s"))
    assert moved.status == 301
    assert header(moved, b"location").startswith("/openapi/v3/apis/apps?hash=")
    assert "timeout" not in header(moved, b"location")
    assert (await handlers.document(get("/openapi/v3/apis/apps", "hash="))).status == 200


@pytest.mark.parametrize("path", ["/openapi/v3/", "/openapi/v3/nope", "/openapi/v3/version/"])
async def test_unknown_documents_are_an_empty_404(handlers: OpenAPIHandlers, path: str) -> None:
    answer = await handlers.document(get(path, "hash=ABC"))
    assert (answer.status, answer.headers, answer.body) == (404, [], b"")


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "application/json"),
        ("application/json;q=0", "application/json"),
        ("text/html,application/*;q=0.5", "application/json"),
        (V3, V3),
        (V3.replace("v3.v1", "v3@v1"), V3),
        (f"application/json;q=0.5,{V3}", V3),
    ],
)
async def test_media_types_that_are_served(handlers: OpenAPIHandlers, accept: str, media_type: str) -> None:
    answer = await handlers.document(get("/openapi/v3/version", accept=accept))
    assert (answer.status, header(answer, b"content-type")) == (200, media_type)


@pytest.mark.parametrize("accept", ["text/html", "application/yaml", V2])
async def test_other_media_types_are_an_empty_406(handlers: OpenAPIHandlers, accept: str) -> None:
    answer = await handlers.document(get("/openapi/v3/version", accept=accept))
    assert (answer.status, answer.headers, answer.body) == (406, [(b"vary", b"Accept")], b"")


async def test_conditional_requests_are_answered_with_304(handlers: OpenAPIHandlers) -> None:
    path = "/openapi/v3/version"
    etag = header(await handlers.document(get(path)), b"etag")
    for request in (
        get(path, if_none_match="*"),
        get(path, if_none_match=f'"x", W/{etag}'),
        get(path, if_modified_since="Fri, 20 Nov 2099 00:00:00 GMT"),
    ):
        answer = await handlers.document(request)
        assert (answer.status, answer.body, header(answer, b"content-type")) == (304, b"", "")
        assert header(answer, b"etag") == etag
    assert (await handlers.document(get(path, if_none_match='"nope", W/"nope"'))).status == 200
    assert (await handlers.index(get("/openapi/v3", if_none_match="*"))).status == 304


async def test_ranges_are_served(handlers: OpenAPIHandlers) -> None:
    part = await handlers.document(get("/openapi/v3/version", range="bytes=0-9"))
    assert (part.status, part.body) == (206, b'{"openapi"')
    beyond = await handlers.document(get("/openapi/v3/version", range="bytes=99999999-"))
    assert (beyond.status, beyond.body) == (416, b"invalid range: failed to overlap\n")
    last = await handlers.document(get("/openapi/v3/version", range="bytes=-1"))
    assert last.body == b"}"


@pytest.mark.parametrize(
    ("asked", "status", "content_range"),
    [
        ("bytes=", 200, ""),
        ("bytes=0-99999999", 206, "bytes 0-{last}/{size}"),
        ("bytes= 2 - 4 ", 206, "bytes 2-4/{size}"),
        ("bytes=-0", 206, "bytes {size}-{last}/{size}"),
        ("bytes=0-99999,0-99999", 200, ""),
        ("bytes=99999999-,1-1", 206, "bytes 1-1/{size}"),
        ("bytes=5-1", 416, ""),
        ("bytes=--5", 416, ""),
        ("bytes=a-b", 416, ""),
        ("lines=0-1", 416, ""),
    ],
)
async def test_ranges_are_read_as_go_reads_them(
    handlers: OpenAPIHandlers, asked: str, status: int, content_range: str
) -> None:
    size = len(await body_of(await handlers.document(get("/openapi/v3/version"))))
    answer = await handlers.document(get("/openapi/v3/version", range=asked))
    assert (answer.status, header(answer, b"content-range")) == (status, content_range.format(size=size, last=size - 1))


async def test_several_ranges_come_in_parts(handlers: OpenAPIHandlers) -> None:
    answer = await handlers.document(get("/openapi/v3/version", range="bytes=0-1,3-4"))
    boundary = header(answer, b"content-type").removeprefix("multipart/byteranges; boundary=")
    assert answer.status == 206
    assert [
        part.rpartition(b"\r\n\r\n")[2] for part in (await body_of(answer)).split(f"\r\n--{boundary}".encode())
    ] == [
        b'{"',
        b"pe",
        b"--\r\n",
    ]


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ({"if_match": '"nope"'}, 412),
        ({"if_match": "*"}, 200),
        ({"if_match": '"nope", {etag}'}, 200),
        ({"if_match": "W/{etag}"}, 412),
        ({"if_unmodified_since": "Fri, 20 Nov 1999 00:00:00 GMT"}, 412),
        ({"if_unmodified_since": "rubbish"}, 200),
        ({"if_none_match": "*", "method": "POST"}, 412),
        ({"if_none_match": "rubbish, *"}, 200),
        ({"if_none_match": '"x"', "if_modified_since": "Fri, 20 Nov 2099 00:00:00 GMT"}, 200),
        ({"range": "bytes=0-3", "if_range": '"x"'}, 200),
        ({"range": "bytes=0-3", "if_range": "{etag}"}, 206),
        ({"range": "bytes=0-3", "if_range": "W/{etag}"}, 200),
        ({"range": "bytes=0-3", "if_range": "Fri, 20 Nov 1999 00:00:00 GMT"}, 200),
    ],
)
async def test_conditions_are_judged_as_go_judges_them(
    handlers: OpenAPIHandlers, conditions: dict[str, str], status: int
) -> None:
    path = "/openapi/v3/version"
    etag = header(await handlers.document(get(path)), b"etag")
    asked = {name: value.replace("{etag}", etag) for name, value in conditions.items()}
    assert (await handlers.document(get(path, **asked))).status == status


async def test_an_invalid_accept_header_gets_an_empty_document(handlers: OpenAPIHandlers) -> None:
    answer = await handlers.document(get("/openapi/v3/version", accept="rubbish"))
    assert (answer.status, answer.body) == (200, b"")


async def test_any_method_is_get(handlers: OpenAPIHandlers) -> None:
    assert (await handlers.document(get("/openapi/v3/version", method="POST"))).status == 200


@pytest.mark.parametrize(
    ("method", "path", "coding", "compressed"),
    [
        ("GET", "/openapi/v2", "identity, GZIP;q=0.5", True),
        ("GET", "/openapi/v2", "gzip;q=0.0", False),
        ("GET", "/openapi/v2", "deflate, *", False),
        ("HEAD", "/openapi/v2", "gzip", False),
        ("GET", "/openapi/v3/apis/apps/v1", "gzip", False),
    ],
)
async def test_only_swagger_is_compressed_on_request(
    handlers: OpenAPIHandlers, method: str, path: str, coding: str, compressed: bool
) -> None:
    request = Request(method, path, headers=[(b"accept-encoding", coding.encode())])
    answer = await (handlers.v2 if path == "/openapi/v2" else handlers.document)(request)
    assert (header(answer, b"content-encoding") == "gzip") == compressed


async def test_swagger_in_both_forms(handlers: OpenAPIHandlers) -> None:
    plain, compressed = await asyncio.gather(
        handlers.v2(get("/openapi/v2")), handlers.v2(get("/openapi/v2", accept_encoding="gzip, deflate"))
    )
    body = await body_of(plain)
    assert body.startswith(b'{"swagger":"2.0"')
    assert header(plain, b"content-length") == str(len(body))
    assert gzip.decompress(await body_of(compressed)) == body
    assert header(compressed, b"content-length") == ""
    encoded = await handlers.v2(get("/openapi/v2", accept=V2.replace("v2.v1", "v2@v1")))
    assert header(encoded, b"content-type") == V2
    fields = dict(wire_fields(await body_of(encoded)))
    assert fields[1] == b"2.0"
    names = [dict(wire_fields(value))[1] for _, value in wire_fields(fields[9])]
    assert b"io.k8s.api.core.v1.Pod" in names
    assert (await handlers.v2(get("/openapi/v2", accept=V3))).status == 406


def wire_fields(data: bytes) -> Any:
    """Yield the fields of a protobuf message: (number, bytes or integer)."""
    position = 0

    def varint() -> int:
        nonlocal position
        shift = result = 0
        while True:
            byte = data[position]
            position += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result

    while position < len(data):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, data[position : position + size]
            position += size
        elif key & 7 == 1:
            yield key >> 3, data[position : position + 8]
            position += 8
        else:
            yield key >> 3, varint()


async def test_a_document_is_made_once_also_for_a_client_that_has_gone(source: BuiltinSource) -> None:
    class Slow(BuiltinSource):
        times = 0
        begun, go = asyncio.Event(), asyncio.Event()

        async def document(self, name: str) -> Any:
            Slow.times += 1
            Slow.begun.set()
            await Slow.go.wait()
            return await source.document(name)

        async def index(self) -> Any:
            return await source.index()

    handlers = OpenAPIHandlers(Slow(source))  # type: ignore[arg-type]
    first, second = (asyncio.create_task(handlers.document(get("/openapi/v3/version"))) for _ in range(2))
    await Slow.begun.wait()
    first.cancel()
    Slow.go.set()
    assert (await second).status == 200
    assert (await handlers.document(get("/openapi/v3/version"))).status == 200
    assert Slow.times == 1


async def test_documents_vary_by_the_accept_header(handlers: OpenAPIHandlers) -> None:
    unasked = await handlers.document(get("/openapi/v3/apis/apps"))
    index = await handlers.index(get("/openapi/v3"))
    unchanged = await handlers.document(get("/openapi/v3/apis/apps", if_none_match=header(unasked, b"etag")))
    moved = await handlers.document(get("/openapi/v3/apis/apps", "hash=ABC"))
    for answer in (unasked, unchanged, moved, await handlers.v2(get("/openapi/v2"))):
        assert (b"vary", b"Accept") in answer.headers
    assert header(index, b"vary") == ""
    assert (header(unasked, b"last-modified") != "", header(unchanged, b"last-modified")) == (True, "")
    assert (header(unasked, b"expires"), header(unasked, b"cache-control")) == ("", "")
