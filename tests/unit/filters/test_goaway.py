"""Tests of the filter that asks HTTP/2 clients to connect elsewhere."""

from __future__ import annotations

from tetrapod.generic.filters.goaway import CLOSES, with_goaway
from tetrapod.generic.http.request import Request, Response


async def handler(request: Request) -> Response:
    return Response(200, [])


async def test_a_fraction_of_http_2_requests_is_marked() -> None:
    numbers = iter([0.5, 0.001, 0.02])
    filtered = with_goaway(handler, 0.01, lambda: next(numbers))
    request = Request("GET", "/")
    assert (await filtered(request)).headers == []
    request.http_version = "2.0"
    marked = [bool((await filtered(request)).headers) for _ in range(3)]
    assert marked == [False, True, False]


async def test_requests_are_marked_on_demand_of_other_filters() -> None:
    filtered = with_goaway(handler, 0.0)
    request = Request("GET", "/")
    request.state[CLOSES] = True
    assert (await filtered(request)).headers == []
    request.http_version = "2.0"
    assert (await filtered(request)).headers == [(b"connection", b"close")]
    assert (await filtered(_http2_request())).headers == []


def _http2_request() -> Request:
    request = Request("GET", "/")
    request.http_version = "2.0"
    return request
