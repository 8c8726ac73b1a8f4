"""Tests of the filter that asks HTTP/2 clients to connect elsewhere."""

from __future__ import annotations

from tetrapod.generic.filters.goaway import with_probabilistic_goaway
from tetrapod.generic.http.request import Request, Response


async def handler(request: Request) -> Response:
    return Response(200, [])


async def test_a_fraction_of_http_2_requests_is_marked() -> None:
    numbers = iter([0.5, 0.001, 0.02])
    filtered = with_probabilistic_goaway(handler, 0.01, lambda: next(numbers))
    request = Request("GET", "/")
    assert (await filtered(request)).headers == []
    request.http_version = "2.0"
    marked = [bool((await filtered(request)).headers) for _ in range(3)]
    assert marked == [False, True, False]


def test_nothing_is_filtered_without_a_chance() -> None:
    assert with_probabilistic_goaway(handler, 0.0) is handler
