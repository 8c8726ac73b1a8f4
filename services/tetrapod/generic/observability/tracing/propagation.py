"""The W3C trace context: `traceparent` is read and written, `tracestate` and `baggage` are forwarded.

Upstream: https://www.w3.org/TR/trace-context/; go.opentelemetry.io/otel/propagation, as set up by
k8s.io/component-base/tracing
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, cast

from tetrapod.generic.http.request import HeaderList
from tetrapod.generic.observability.tracing.spans import CLIENT, P, R, Span, current

TRACEPARENT: Final = b"traceparent"
_SCOPE: Final = "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
_CARRIED: Final = (b"tracestate", b"baggage")
_FORM: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class Remote(NamedTuple):
    """The span of the caller, as its `traceparent` header names it.

    Attributes:
        trace_id: the id of the trace.
        span_id: the id of the caller's span.
        sampled: whether the caller exports its trace.
    """

    trace_id: int
    span_id: int
    sampled: bool


def extract(headers: HeaderList) -> Remote | None:
    """Return the caller's span from the `traceparent` header; None if the header is missing or malformed."""
    values = [value for name, value in headers if name == TRACEPARENT]
    if not values:
        return None
    match = _FORM.fullmatch(values[0])
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == b"ff" or (version == b"00" and more) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return Remote(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & 1))


def carried(headers: HeaderList) -> HeaderList:
    """Return the `tracestate` and `baggage` headers of an incoming request, for `Trace.carried`.

    `inject` adds them unchanged to the requests that the server sends while it handles this one.
    """
    return [header for header in headers if header[0] in _CARRIED]


def traceparent(span: Span) -> str:
    """Return the value of the `traceparent` header for requests that `span` sends."""
    return f"00-{span.trace.trace_id:032x}-{span.span_id:016x}-{'01' if span.trace.sampled else '00'}"


def inject(headers: HeaderList, span: Span) -> HeaderList:
    """Return a copy of the headers of an outgoing request with the trace headers that `span` requires.

    `traceparent` names `span`; it replaces one in `headers`. The `tracestate` and `baggage` of the incoming request are
    added, except those that `headers` has already.

    Args:
        headers: the headers of the outgoing request.
        span: the span in which the request is sent.
    """
    unrelated = [header for header in headers if header[0] != TRACEPARENT]
    known = {name for name, _ in unrelated}
    more = [header for header in span.trace.carried if header[0] not in known]
    return [*unrelated, (TRACEPARENT, traceparent(span).encode()), *more]


def outgoing(exchange: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Decorate `BackendPool.exchange` so that a call in a traced request becomes a span and sends trace headers.

    Calls in requests that are not traced remain unchanged.
    Upstream: otelhttp
    """
    ask = cast(Callable[..., Coroutine[Any, Any, R]], exchange)

    async def traced(
        parent: Span, pool: Any, endpoint: Any, method: str, target: str, headers: HeaderList, *more: Any, **named: Any
    ) -> R:
        with parent.child(f"HTTP {method}", CLIENT, _SCOPE) as step:
            host = named.get("host") or endpoint.authority
            step.put({"http.request.method": method, "server.address": host, "url.path": target.partition("?")[0]})
            connection: Any = await ask(pool, endpoint, method, target, inject(headers, step or parent), *more, **named)
            step.put({"http.response.status_code": connection.status})
            return cast(R, connection)

    @functools.wraps(exchange)
    def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        span = current()
        return (
            exchange(*args, **kwargs)
            if span is None
            else cast(Callable[..., Coroutine[Any, Any, R]], traced)(span, *args, **kwargs)
        )

    return call
