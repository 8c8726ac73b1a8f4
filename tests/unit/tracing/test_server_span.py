"""Tests of the attributes of a request's server span."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tetrapod.generic.filters.tracing import with_tracing
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.observability.tracing.provider import Tracing
from tetrapod.generic.observability.tracing.spans import Span, Trace


class _SamplesAll:
    """A sampler that samples every request and keeps the finished spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def decide(self, request: Request, trace: Trace) -> int:
        trace.sampled = True
        return 0

    def finished(self, span: Span) -> None:
        self.spans.append(span)


async def _respond(request: Request) -> Response:
    return Response(200, [])


async def _attributes(host: str) -> dict[str, Any]:
    sampler = _SamplesAll()
    await with_tracing(_respond, cast(Tracing, sampler))(Request("GET", "/", headers=[(b"host", host.encode())]))
    return sampler.spans[0].attributes


async def test_the_port_of_the_host_header_is_recorded() -> None:
    attributes = await _attributes("[::1]:6443")
    assert (attributes["server.address"], attributes["server.port"]) == ("[::1]", 6443)


@pytest.mark.parametrize("port", ["", "65536", "9" * 5000])
async def test_an_invalid_port_in_the_host_header_is_left_out(port: str) -> None:
    assert "server.port" not in await _attributes(f"a:{port}")
