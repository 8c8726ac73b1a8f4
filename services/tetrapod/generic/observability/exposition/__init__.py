"""The exposition of metrics as text, and as protobuf with native histograms.

Modules that import slowly are imported at the first scrape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tetrapod.generic.http.negotiation.accept import parse_accept
from tetrapod.generic.http.request import Request, Response
from tetrapod.generic.metrics.metric import Metric
from tetrapod.generic.metrics.registry import STARTED

_MESSAGE: Final = "io.prometheus.client.MetricFamily"
_ENCODINGS: Final = ("delimited", "text", "compact-text")
_ESCAPINGS: Final = ("allow-utf-8", "underscores", "dots", "values")


async def metrics_response(request: Request, metrics: Sequence[Metric], collectors: Sequence[Any] = ()) -> Response:
    """Return a response with the metrics in the format that the client accepts. They are encoded in a thread.

    The first request for protobuf starts native histograms.

    Args:
        request: the request.
        metrics: the metrics.
        collectors: collectors of prometheus-client, whose metrics are included.
    """
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


class Form(NamedTuple):
    """A format of metrics: text, or protobuf in one of its encodings.

    Attributes:
        encoding: the encoding of protobuf, such as "delimited"; "" for text.
        content_type: the Content-Type of the response.

    Upstream: prometheus/common/expfmt/encode.go, Negotiate
    """

    encoding: str
    content_type: str


def negotiate(accept: str) -> Form:
    """Return the format for an Accept header; text if the header names no other supported one.

    The requested escaping scheme is repeated in the Content-Type, but has no effect: the names need no escaping.
    """
    escaping = "underscores"
    for clause in parse_accept(accept):
        parameters = dict(clause.parameters)
        if parameters.get("escaping") in _ESCAPINGS:
            escaping = parameters["escaping"]
        media_type = f"{clause.type}/{clause.subtype}"
        if (
            media_type == "application/vnd.google.protobuf"
            and parameters.get("proto") == _MESSAGE
            and parameters.get("encoding") in _ENCODINGS
        ):
            encoding = parameters["encoding"]
            return Form(encoding, f"{media_type}; proto={_MESSAGE}; encoding={encoding}; escaping={escaping}")
        if media_type == "text/plain" and parameters.get("version", "") in ("", "0.0.4"):
            break
    return Form("", f"text/plain; version=0.0.4; charset=utf-8; escaping={escaping}")
