"""Gives a request its deadline: `?timeout=`, at most `--request-timeout`; long-running ones have none.

Upstream: endpoints/filters/request_deadline.go and server/filters/timeout.go.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final
from urllib.parse import parse_qs

from tetrapod.generic.filters.long_running import is_long_running
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.machinery import status
from tetrapod.machinery.duration import parse_duration

_TIMEOUT_TEXT: Final = "request did not complete within the allotted timeout"


def with_request_deadline(handler: Handler, request_timeout: float) -> Handler:
    async def request_deadline(request: Request) -> Response:
        if is_long_running(request.info):
            return await handler(request)
        seconds = request_timeout
        if "timeout=" in request.query_string:
            seconds = _asked(request.query_string, request_timeout)
        request.deadline = time.monotonic() + seconds
        try:
            async with asyncio.timeout(seconds):
                return await handler(request)
        except TimeoutError:
            raise status.timeout(_TIMEOUT_TEXT) from None

    return request_deadline


def _asked(query: str, limit: float) -> float:
    values = parse_qs(query, keep_blank_values=True).get("timeout", [])
    if not values or not values[0]:
        return limit
    try:
        seconds = parse_duration(values[0])
    except ValueError as error:
        raise status.bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return min(seconds, limit) if seconds > 0 else limit
