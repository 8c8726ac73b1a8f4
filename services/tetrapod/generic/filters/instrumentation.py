"""Counts and times every request under upstream's metric names, and writes the access log line (endpoints/metrics, httplog)."""

from __future__ import annotations

import logging
import time

from tetrapod.generic.metrics import REQUEST_DURATION, REQUEST_TOTAL, REQUESTS_IN_FLIGHT
from tetrapod.generic.request import Handler, Request, Response

access = logging.getLogger("tetrapod.access")


def with_instrumentation(handler: Handler, component: str) -> Handler:
    async def instrumentation(request: Request) -> Response:
        info = request.info
        kind = "readOnly" if info is not None and info.verb in ("get", "list", "watch") else "mutating"
        REQUESTS_IN_FLIGHT.add((kind,), 1)
        started = time.monotonic()
        code = 0
        try:
            response = await handler(request)
            code = response.status
            return response
        finally:
            seconds = time.monotonic() - started
            REQUESTS_IN_FLIGHT.add((kind,), -1)
            if info is not None and info.is_resource_request:
                scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
                labels = (info.verb.upper(), info.api_group, info.api_version, info.resource, info.subresource, scope, component)
            else:
                labels = (request.method, "", "", "", request.path if request.path in _KNOWN else "", "", component)
            REQUEST_TOTAL.add((*labels, _CODES.get(code) or str(code)), 1)
            REQUEST_DURATION.observe(labels, seconds)
            if access.isEnabledFor(logging.INFO):
                access.info(
                    "HTTP",
                    extra={
                        "verb": info.verb if info else request.method,
                        "uri": request.raw_path + ("?" + request.query_string if request.query_string else ""),
                        "latency_ms": round(seconds * 1000, 3),
                        "user": request.user.name,
                        "userAgent": request.header(b"user-agent"),
                        "audit_id": request.audit_id,
                        "srcIP": request.remote,
                        "resp": code,
                    },
                )

    return instrumentation


_CODES = {code: str(code) for code in (200, 201, 400, 403, 404, 409)}
_KNOWN = frozenset({"/api", "/apis", "/version", "/healthz", "/livez", "/readyz", "/metrics", "/openapi/v2", "/openapi/v3"})
