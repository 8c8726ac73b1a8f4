"""The exposition of metrics as text, and as protobuf with native histograms.

Modules that import slowly are imported at the first scrape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.metrics.collectors import STARTED, Metric
from tetrapod.generic.observability.exposition.negotiation import negotiate


async def metrics_response(request: Request, metrics: Sequence[Metric], collectors: Sequence[Any] = ()) -> Response:
    """Return the metrics, and those of prometheus-client's `collectors`, in the requested format."""
    form = negotiate(request.header(b"accept"))
    render = _messages(metrics, collectors, form.encoding) if form.encoding else _text(metrics, collectors)
    body = await asyncio.to_thread(render)
    headers = [(b"content-type", form.content_type.encode()), (b"process-start-time-unix", str(int(STARTED)).encode())]
    return Response(200, headers, body)


def _text(metrics: Sequence[Metric], collectors: Sequence[Any]) -> Callable[[], bytes]:
    from tetrapod.generic.observability.exposition import text

    return lambda: text.render(metrics, collectors)


def _messages(metrics: Sequence[Metric], collectors: Sequence[Any], encoding: str) -> Callable[[], bytes]:
    from tetrapod.generic.observability.exposition import messages, native

    native.begin(metrics)
    write = {"delimited": messages.delimited, "text": messages.text, "compact-text": messages.compact_text}[encoding]
    return lambda: messages.render(metrics, collectors, write)
