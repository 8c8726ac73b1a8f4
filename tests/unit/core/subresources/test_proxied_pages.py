"""Tests of HTML pages that backends of the proxy subresources send, complete or in chunks."""

from __future__ import annotations

import gzip

import pytest

from tetrapod.core.subresources.links import MAX_PAGE, Links
from tetrapod.core.subresources.proxy import with_rewritten_links
from tetrapod.generic.client.inprocess import QueueWriter
from tetrapod.generic.http.request import AnswerBroken, HeaderList, Request, Response, StreamResponse, StreamWriter
from tetrapod.machinery.status import StatusError

PREFIX = "/api/v1/namespaces/n/pods/p:1/proxy"
LINKS = Links(PREFIX, "10.1.2.3:1", "front:6443")
LINK = b"<a href=/x>"
REWRITTEN = f'<a href="{PREFIX}/x">'.encode()


def html(encoding: bytes = b"") -> HeaderList:
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"11")]
    return [*headers, (b"content-encoding", encoding)] if encoding else headers


async def rewritten(*chunks: bytes, encoding: bytes = b"") -> tuple[HeaderList, bytes]:
    """Return the headers and the body of a page that the backend sends in these chunks."""

    async def run(writer: StreamWriter) -> None:
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()

    response = await with_rewritten_links(StreamResponse(200, html(encoding), run), Request("GET", "/"), LINKS)
    assert isinstance(response, StreamResponse)
    writer = QueueWriter()
    await response.run(writer)
    return response.headers, b"".join(writer.chunks)


async def test_links_in_a_complete_page_are_rewritten() -> None:
    response = await with_rewritten_links(Response(200, html(), LINK), Request("GET", "/"), LINKS)
    assert response.body == REWRITTEN
    assert b"content-length" not in dict(response.headers)


async def test_links_in_a_page_that_arrives_in_chunks_are_rewritten() -> None:
    headers, body = await rewritten(LINK[:5], LINK[5:], LINK * 1000)
    assert body == REWRITTEN * 1001
    assert b"content-length" not in dict(headers)


async def test_a_page_without_end_is_passed_on_as_it_arrives() -> None:
    chunk = LINK * 10_000
    count = MAX_PAGE // len(chunk) + 3
    _, body = await rewritten(*[chunk] * count)
    assert body == chunk * count


async def test_a_page_that_is_not_encoded_as_it_says_is_an_error() -> None:
    with pytest.raises(StatusError, match="error trying to reach service") as rejected:
        await with_rewritten_links(Response(200, html(b"gzip"), b"x"), Request("GET", "/"), LINKS)
    assert rejected.value.code == 503
    with pytest.raises(AnswerBroken):
        await rewritten(gzip.compress(LINK)[:-4], encoding=b"gzip")
