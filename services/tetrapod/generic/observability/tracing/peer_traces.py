"""The exchange of traces between the front proxy (the aggregator) and the service that a request is proxied to.

The request header says that the `traceparent` header is the aggregator's own, or also that the service shall return its
spans. The response header contains the spans. The headers share the prefix of the identity headers, so the aggregator
removes them from requests of clients and responses of other servers (proxy/headers.py). They are accepted from the
front proxy only (authentication/requestheader.py).
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.peers import TRACE_SPANS as RESPONSE_HEADER
from tetrapod.generic.http.peers import pack_header, take_out_headers
from tetrapod.generic.http.request import HeaderList, Request, Response
from tetrapod.generic.observability.tracing.report import span_document
from tetrapod.generic.observability.tracing.spans import Nothing, Span

REQUEST_HEADER: Final = b"x-remote-trace"
STATE_KEY: Final = "trace header of the front proxy"
"""A key of `Request.state`, with the trace header of a request that the front proxy has sent: RETURN or TRUST. Only the
authenticator of the front proxy sets it.
"""
RETURN: Final = "tell"
TRUST: Final = "believe"
_LIMIT: Final = 256 * 1024


def request_headers(step: Span | Nothing) -> HeaderList:
    """Return the trace headers of a request that the aggregator forwards to a service.

    `step` is the span of the forwarded call. The result is [] if the request is not traced (NOTHING).
    """
    return [(REQUEST_HEADER, (RETURN if step.trace.detailed else TRUST).encode())] if isinstance(step, Span) else []


def target(request: Request, step: Span | Nothing) -> str:
    """Return path and query with which the aggregator forwards a request to a peer service.

    If a detailed trace is requested, `trace=1` is appended. `step` is the span of the call.
    """
    query = request.query_string
    if isinstance(step, Span) and step.trace.detailed:
        query = f"{query}&trace=1" if query else "trace=1"
    return f"{request.raw_path}?{query}" if query else request.raw_path


def requests_spans(request: Request) -> bool:
    """Return whether the front proxy requests the spans of this request, for a detailed trace."""
    return request.state.get(STATE_KEY) == RETURN


def is_trusted(request: Request) -> bool:
    """Return whether the request comes from the aggregator with trace headers, so that its `traceparent` is trusted."""
    return request.state.get(STATE_KEY) in (RETURN, TRUST)


def add_response_header(response: Response, root: Span) -> None:
    """End `root`, and add the spans below it to the response headers.

    No header is added if the encoded spans exceed 256 KiB.
    """
    root.end()
    encoded = pack_header(span_document(root, root.started).get("spans", []), default=str)
    if len(encoded) <= _LIMIT:
        response.headers.append((RESPONSE_HEADER, encoded))


def graft(response: Response, step: Span | Nothing) -> None:
    """Remove the spans in a service's response headers, and attach them to `step`, the span of the call."""
    for spans in take_out_headers(response, RESPONSE_HEADER):
        if isinstance(step, Span):
            step.grafts += spans
