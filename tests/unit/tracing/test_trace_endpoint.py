"""Tests of traces requested by a client: which requests ask for one, and how the response is handled."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tetrapod.generic.filters.tracing import with_traces
from tetrapod.generic.http.peers import TRACE_SPANS
from tetrapod.generic.http.request import (
    Handler,
    Hijacked,
    Request,
    Response,
    StreamResponse,
    StreamWriter,
    UpgradeResponse,
)
from tetrapod.generic.observability.tracing import peer_traces
from tetrapod.generic.observability.tracing.trace_endpoint import asked_form, with_permission, without_parameter
from tetrapod.generic.proxy.splice import Splice
from tetrapod.machinery import requestinfo
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import SYSTEM_MASTERS, UserInfo

ADMIN = UserInfo("admin", groups=(SYSTEM_MASTERS,))


def request_of(target: str, user: UserInfo = ADMIN) -> Request:
    path, _, query = target.partition("?")
    request = Request("GET", path, query_string=query, user=user)
    request.info = requestinfo.parse("GET", path, query)
    return request


async def traced(handler: Handler, request: Request) -> Response:
    return await with_traces(handler, lambda: with_permission(handler), None, "apiserver")(request)


async def report_of(handler: Handler, target: str) -> dict[str, Any]:
    response = await traced(handler, request_of(target))
    found: dict[str, Any] = orjson.loads(response.body)
    return found


@pytest.mark.parametrize(
    ("target", "form"),
    [
        ("/version?trace=1", "1"),
        ("/version?a=b&trace=text", "text"),
        ("/version?trace=json&a=b", "1"),
        ("/version?trace=2", ""),
        ("/version?xtrace=1", ""),
        ("/api/v1/namespaces/d/pods/p/proxy/x?trace=1", ""),
        ("/api/v1/namespaces/d/pods/p/exec?trace=1", "1"),
        ("/api/v1/proxy/nodes/n?trace=1", ""),
    ],
)
def test_only_requests_with_the_parameter_are_traced(target: str, form: str) -> None:
    assert asked_form(request_of(target)) == form


def test_the_parameter_alone_is_taken_away() -> None:
    assert without_parameter("a=b&trace=1&c=trace%3D1&trace=text&d") == "a=b&c=trace%3D1&d"


async def test_an_untraced_request_goes_its_way_untouched() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], request.query_string.encode())

    assert (await traced(handler, request_of("/version?trace=0"))).body == b"trace=0"


async def test_others_than_masters_are_rejected() -> None:
    async def handler(request: Request) -> Response:
        raise AssertionError("it is not asked")

    with pytest.raises(StatusError) as caught:
        await traced(handler, request_of("/version?trace=1", UserInfo("bob", groups=("system:authenticated",))))
    assert caught.value.code == 403


async def test_tracing_ends_an_endless_stream_after_it_has_begun() -> None:
    ended = []

    async def run(writer: StreamWriter) -> None:
        try:
            writer.write(b"first")
            await writer.wait_closed()
        finally:
            ended.append(True)

    async def watch(request: Request) -> Response:
        return StreamResponse(200, [], run, endless=True)

    report = await report_of(watch, "/api/v1/pods?watch=1&trace=1")
    assert (ended, report["response"]["bytes"]) == ([True], 5)


async def test_a_stream_with_an_end_is_written_to_it() -> None:
    async def run(writer: StreamWriter) -> None:
        for _ in range(3):
            writer.write(b"piece")
            await asyncio.sleep(0)
            await writer.drain()

    async def listing(request: Request) -> Response:
        return StreamResponse(200, [], run)

    assert (await report_of(listing, "/api/v1/pods?trace=1"))["response"]["bytes"] == 15


async def test_an_upgraded_connection_is_let_go_of_on_both_sides() -> None:
    class Backend(asyncio.Transport):
        closed = False

        def close(self) -> None:
            self.closed = True

        def is_closing(self) -> bool:
            return self.closed

    backend = Backend()

    async def exec_(request: Request) -> Response:
        async def run(client: Hijacked) -> None:
            client.transport.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            splice = Splice()
            splice.backend.connection_made(backend)
            client.take_over(splice.client)
            await splice.run()

        return UpgradeResponse(run)

    report = await report_of(exec_, "/api/v1/namespaces/d/pods/p/exec?command=ls&trace=1")
    assert (report["response"]["status"], backend.closed) == (101, True)


async def test_a_service_returns_its_spans_in_a_header() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, [], b"as ever")

    request = request_of("/version?trace=1", UserInfo("bob"))
    request.state[peer_traces.STATE_KEY] = peer_traces.RETURN
    response = await traced(handler, request)
    assert response.body == b"as ever" and [name for name, _ in response.headers] == [TRACE_SPANS]
