"""Selects traced requests and creates their outermost span.

All other requests pass the plain chain of filters. Whether a request may be traced is decided before the first
filter, from its query (`?trace=1`) and, if traces are exported, its headers. The chain with a span around each filter
is built at the first traced request.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/traces.go;
go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from tetrapod.generic.http.request import Handler, Request, Response, StreamResponse, UpgradeResponse
from tetrapod.generic.observability.tracing import trace_endpoint
from tetrapod.generic.observability.tracing.provider import Tracing
from tetrapod.generic.observability.tracing.report import FILTER
from tetrapod.generic.observability.tracing.spans import SERVER, Span, Trace, arm, current, start
from tetrapod.machinery.golang.integers import parse_uint

_SCOPE: Final = "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"


def with_traces(plain: Handler, build: Callable[[], Handler], tracing: Tracing | None, server: str) -> Handler:
    """Return a handler that passes traced requests to a chain with spans, and all others to `plain`.

    Args:
        plain: the chain without spans.
        build: builds the chain with spans; called at the first traced request.
        tracing: the sampling and export of traces; None if traces are not exported.
        server: the server's name in traces.
    """
    built: list[Handler] = []

    def traced() -> Handler:
        if not built:
            arm()
            built.append(build())
        return built[0]

    def traces(request: Request) -> Coroutine[Any, Any, Response]:
        if "trace=" in request.query_string and (form := trace_endpoint.asked_form(request)):
            if tracing is not None:
                tracing.concerns(request)
            return trace_endpoint.answer_with_trace(traced(), request, form, server)
        if tracing is not None and tracing.concerns(request):
            return traced()(request)
        return plain(request)

    return traces


def spanned(name: str, handler: Handler) -> Handler:
    """Return a handler that calls `handler` in a new span with this name."""

    async def filter_span(request: Request) -> Response:
        with start(name, scope=FILTER):
            return await handler(request)

    return filter_span


def with_tracing(handler: Handler, tracing: Tracing | None) -> Handler:
    """Return a handler that creates the server span of sampled requests; `handler` itself if `tracing` is None.

    The filter comes after authentication, because only some users may mark a request as traced.
    """
    if tracing is None:
        return handler

    async def server_span(request: Request) -> Response:
        requested_span = current()
        trace = requested_span.trace if requested_span is not None else Trace()
        parent = tracing.decide(request, trace)
        if not trace.sampled:
            return await handler(request)
        span = Span(trace, span_name(request), parent, SERVER, _SCOPE)
        if requested_span is not None:
            requested_span.children.append(span)
        span.started, request.trace_id = request.received, f"{trace.trace_id:032x}"
        span.put(_request_attributes(request))
        try:
            with span.active():
                response = await handler(request)
        except BaseException as error:
            span.fail(error)
            tracing.finished(span)
            raise
        _answered(span, response, lambda: tracing.finished(span))
        return response

    return server_span


def _answered(span: Span, response: Response, finished: Callable[[], None]) -> None:
    """Add the status and the size of the response to the span, and call `finished` when the response is complete.

    A streamed response or an upgrade is complete when its `run` ends.
    """
    span.put({"http.response.status_code": response.status})
    if response.status >= 500:
        span.error = span.error or f"status {response.status}"
    if isinstance(response, (StreamResponse, UpgradeResponse)):
        response.run = _until_done(response.run, span, finished)
        return
    span.put({"http.response.body.size": len(response.body)})
    finished()


def _until_done(
    run: Callable[[Any], Awaitable[None]], span: Span, finished: Callable[[], None]
) -> Callable[[Any], Awaitable[None]]:
    async def until_done(to: Any) -> None:
        try:
            with span.active():
                await run(to)
        finally:
            finished()

    return until_done


def span_name(request: Request) -> str:
    """Return the name of the request's span.

    It is the method, and for resources also the path with `{:namespace}` and `{:name}` in place of the names.
    """
    info = request.info
    if info is None or not info.is_resource_request:
        return request.method
    segments = [info.api_prefix, info.api_group, info.api_version]
    segments += ["namespaces", "{:namespace}"] if info.namespace else []
    segments += [info.resource, "{:name}" if info.name else "", info.subresource]
    return f"{request.method} /{'/'.join(segment for segment in segments if segment)}"


def _request_attributes(request: Request) -> dict[str, Any]:
    host, _, port = request.header(b"host").rpartition(":")
    attributes: dict[str, Any] = {
        "server.address": host or port,
        "http.request.method": request.method,
        "url.scheme": request.scheme,
        "network.peer.address": request.remote,
        "user_agent.original": request.header(b"user-agent"),
        "client.address": request.header(b"x-forwarded-for").partition(",")[0].strip() or request.remote,
        "url.path": request.path,
        "network.protocol.version": request.http_version,
        "http.target": f"{request.raw_path}?{request.query_string}" if request.query_string else request.raw_path,
        "audit-id": request.audit_id,
    }
    if host:
        with suppress(ValueError):  # as upstream, a port that is not a number of 16 bits is left out
            attributes["server.port"] = parse_uint(port, 16)
    if (length := request.header(b"content-length")).isdigit() and length != "0":
        attributes["http.request.body.size"] = int(length)
    return attributes
