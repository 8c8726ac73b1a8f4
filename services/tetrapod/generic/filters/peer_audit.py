"""The filter that returns audit data to the front proxy, which writes the audit events (audit/peer_audit.py).

The aggregator lacks some data that a peer service (core, extensions or auth) has: request object and annotations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tetrapod.generic.http.peers import AUDIT_STATE_KEY
from tetrapod.generic.http.request import Handler, HeaderList, Hijacked, Request, Response, UpgradeResponse
from tetrapod.machinery.status import StatusError


def with_audit_findings(handler: Handler) -> Handler:
    """Return a handler that collects audit data if the aggregator requests them, and adds them to the response headers.

    It passes all other requests on unchanged.

    Args:
        handler: handles the request.
    """

    async def audit_findings(request: Request) -> Response:
        requested = request.state.get(AUDIT_STATE_KEY)
        if requested is None:
            return await handler(request)
        from tetrapod.generic.audit.context import AuditContext
        from tetrapod.generic.audit.peer_audit import parse_request_header, response_header

        auditing = parse_request_header(requested)
        if auditing is None or request.audit is not None:
            return await handler(request)
        context = request.audit = AuditContext(request, auditing, None, None)
        try:
            with context.measured_store():
                response = await handler(request)
        except StatusError as error:
            context.record_status(error.to_status())
            error.headers.extend(await response_header(context))
            raise
        headers = await response_header(context)
        if isinstance(response, UpgradeResponse):
            response.run = _with_headers(response.run, headers)
        else:
            response.headers.extend(headers)
        return response

    return audit_findings


def _with_headers(
    run: Callable[[Hijacked], Awaitable[None]], headers: HeaderList
) -> Callable[[Hijacked], Awaitable[None]]:
    """Return a function like `run` that also writes `headers` in the response.

    Args:
        run: serves an upgraded connection and writes the response itself (`UpgradeResponse.run`).
        headers: the headers to add.
    """
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)

    async def run_with_headers(client: Hijacked) -> None:
        await run(_Switching(client, lines))

    return run_with_headers


class _Switching:
    """A stand-in for the hijacked connection `client`, which adds the header `lines` to the head of the response."""

    def __init__(self, client: Hijacked, lines: bytes) -> None:
        self._client = client
        self.early = client.early
        self.transport: Any = _HeadWriter(client, lines)

    def take_over(self, protocol: asyncio.Protocol) -> None:
        self._client.take_over(protocol)


class _HeadWriter:
    """A stand-in for the transport of a hijacked connection, which adds header lines to the head of the response.

    An upgrade calls `write` once, with the head of its response. Then a protocol takes over the actual transport.

    Args:
        client: the hijacked connection, to which the head is written.
        lines: encoded header lines that each end in CRLF. They are inserted after the status line.
    """

    def __init__(self, client: Hijacked, lines: bytes) -> None:
        self._client, self._lines = client, lines

    def write(self, data: bytes) -> None:
        """Write `data`, which begins with the whole status line, with the lines inserted after that line."""
        status_line, end, rest = data.partition(b"\r\n")
        self._client.transport.write(status_line + end + self._lines + rest)
