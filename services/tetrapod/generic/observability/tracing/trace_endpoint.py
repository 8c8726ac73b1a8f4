"""`?trace=1`: returns the trace of a request instead of its response, to members of system:masters.

The request is executed as usual. Its response is discarded; the trace, which includes status and headers of the
response, is sent instead. A long-running response (a watch, followed logs, exec) is cancelled as soon as it has begun.
`?trace=1` returns JSON, `?trace=text` text. The parameter is removed before any filter sees the request. It is kept for
a `proxy` subresource, because the backend may have a parameter of that name.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from tetrapod.generic.http.headers import JSON_TYPE, NOSNIFF, TEXT_TYPE
from tetrapod.generic.http.peers import TRACE_SPANS
from tetrapod.generic.http.request import Handler, Request, Response, StreamResponse, UpgradeResponse
from tetrapod.generic.observability.tracing import peer_traces
from tetrapod.generic.observability.tracing.report import span_document, text
from tetrapod.generic.observability.tracing.spans import Span, Trace, current, detail
from tetrapod.machinery import requestinfo
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.requestinfo import is_long_running
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import SYSTEM_MASTERS

JSON, TEXT = "1", "text"
_FORMS: Final = {"1": JSON, "json": JSON, "text": TEXT}
_PATTERN: Final = re.compile(r"(?:^|&)trace=(1|json|text)(?=&|$)")
_parameter = _PATTERN.search
_DISCARD_SECONDS: Final = 30.0
_JSON_HEADERS: Final = [JSON_TYPE]
_TEXT_HEADERS: Final = [TEXT_TYPE, NOSNIFF]
_KEPT: Final = frozenset({b"audit-id", b"warning"})


def asked_form(request: Request) -> str:
    """Return the requested form of the trace, JSON or TEXT.

    Return "" if no trace is requested, and for proxied requests, whose query parameter `trace` is for the backend.
    """
    match = _parameter(request.query_string)
    form = _FORMS[match[1]] if match is not None else ""
    if form:
        info = requestinfo.parse(request.method, request.path, request.query_string, request.query)
        if info.is_resource_request and (info.subresource == "proxy" or info.verb == "proxy"):
            return ""
    return form


def without_parameter(query: str) -> str:
    """Return the query string without the parameter `trace`."""
    left = _PATTERN.sub("", query)
    return left if query.startswith("&") else left.removeprefix("&")


def with_permission(handler: Handler) -> Handler:
    """Return a handler that rejects `?trace=1` of users outside system:masters with a StatusError 403.

    It must be called after authentication. Other requests are passed on.
    """

    async def trace_permission(request: Request) -> Response:
        span = current()
        if span is not None and span.trace.detailed:
            if not (peer_traces.requests_spans(request) or SYSTEM_MASTERS in request.user.groups):
                name = go_quote(request.user.name)
                raise StatusError(
                    403,
                    "Forbidden",
                    f"requests may be traced by members of {SYSTEM_MASTERS} only, and user {name} is none of them",
                )
            span.trace.granted = True
        return await handler(request)

    return trace_permission


async def answer_with_trace(handler: Handler, request: Request, form: str, server: str) -> Response:
    """Execute a request and return a 200 with its trace, in the form JSON or TEXT.

    The response of the request itself is returned if the user may not see the trace. It is returned with the spans in a
    header if a front proxy requested them.

    Args:
        handler: executes the request, and must include `with_permission`.
        request: the request, from whose query the parameter is removed.
        form: JSON or TEXT.
        server: the server's name in the trace.
    """
    uri = request.raw_path + (f"?{request.query_string}" if request.query_string else "")
    request.query_string = without_parameter(request.query_string)
    trace = Trace(detailed=True)
    root = Span(trace, server)
    root.started = request.received
    try:
        with root:
            response = await handler(request)
            if not trace.granted:
                return response
            if peer_traces.requests_spans(request):
                peer_traces.add_response_header(response, root)
                return response
            size = await _discard(response, request)
        report = _report(request, uri, response, size, root)
    finally:
        trace.closed = True
    kept_headers = [header for header in response.headers if header[0] in _KEPT]
    if form == TEXT:
        return Response(200, [*_TEXT_HEADERS, *kept_headers], text(report).encode())
    return Response(
        200, [*_JSON_HEADERS, *kept_headers], orjson.dumps(report, option=orjson.OPT_INDENT_2, default=str) + b"\n"
    )


def _report(request: Request, uri: str, response: Response, size: int, root: Span) -> dict[str, Any]:
    root_span = span_document(root, root.started)
    began = datetime.now(UTC).timestamp() - (root.ended - root.started)
    hidden = _KEPT | {TRACE_SPANS}
    return {
        "auditID": request.audit_id,
        "traceID": f"{root.trace.trace_id:032x}",
        "server": root.name,
        "time": datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "took": root_span["took"],
        "request": {"method": request.method, "uri": uri, "user": request.user.name, "client": request.remote},
        "response": {
            "status": response.status,
            "bytes": size,
            "headers": {
                name.decode(): value.decode("latin-1") for name, value in response.headers if name not in hidden
            },
        },
        "dropped": root.trace.dropped,
        "spans": root_span.get("spans", []),
    }


async def _discard(response: Response, request: Request) -> int:
    """Run a stream without a client, or end an upgraded connection at once. Return the number of bytes of the response.

    An endless stream is cancelled as soon as it has begun, any other one after 30 seconds.
    """
    writer = _Discarding()
    if isinstance(response, StreamResponse):
        work = asyncio.ensure_future(response.run(writer))
    elif isinstance(response, UpgradeResponse):
        work = asyncio.ensure_future(response.run(_Closed()))
    else:
        return len(response.body)
    endless = is_long_running(request.info) or (isinstance(response, StreamResponse) and response.endless)
    with detail("writing the answer") as span:
        await asyncio.wait([work], timeout=0 if endless else _DISCARD_SECONDS)
        if endless:
            await asyncio.sleep(0)  # let the task start, so that cancelling it runs its cleanup
        if not work.done():
            span.event("broken off, having begun")
            work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    return writer.size


class _Discarding:
    """A StreamWriter that counts the bytes in `size` and discards them."""

    def __init__(self) -> None:
        self.size = 0
        self.closed = False

    def write(self, data: bytes) -> None:
        self.size += len(data)

    def buffered(self) -> int:
        return 0

    async def drain(self) -> None: ...

    async def wait_closed(self) -> None:
        await asyncio.Event().wait()


class _Closed(asyncio.Transport):
    """A stand-in for a client connection (`Hijacked`) and its transport, on which the client has already disconnected.

    An upgrade handler that runs on it ends at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.early = b""
        self.transport: Any = self

    def take_over(self, protocol: asyncio.Protocol) -> None:
        protocol.connection_made(self)
        protocol.connection_lost(None)

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def is_closing(self) -> bool:
        return True

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0
