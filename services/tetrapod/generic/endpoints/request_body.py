"""`read_body`: the body of a request for a resource, up to the limit of upstream.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, limitedReadBodyWithRecordMetric
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.http.request import Request
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.generic.observability.tracing.spans import current_span

_MAX_BODY: Final = 3 * 1024 * 1024
_SIZES: Final = Histogram(
    "apiserver_request_body_size_bytes",
    "Apiserver request body size in bytes broken out by resource and verb.",
    ("resource", "group", "verb"),
    tuple(50_000.0 + 100_000 * i for i in range(31)),
)


async def read_body(request: Request) -> bytes:
    """Read the body of a request, and record its size in the metric.

    Raises:
        StatusError: 413, the body exceeds 3 MiB.
    """
    body = await request.body.read(_MAX_BODY)
    current_span().event("limitedReadBody succeeded")
    if (info := request.info) is not None and info.is_resource_request:
        verb = "delete_collection" if info.verb == "deletecollection" else info.verb
        _SIZES.observe((info.resource, info.api_group, verb), len(body))
    return body
