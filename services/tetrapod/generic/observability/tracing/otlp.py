"""Spans as OTLP protobuf messages.

Upstream: go.opentelemetry.io/otel/exporters/otlp/otlptrace/internal/tracetransform.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from tetrapod.generic.observability.tracing.report import FILTER
from tetrapod.generic.observability.tracing.spans import Span

_SCOPES = {FILTER: "k8s.op/apiserver/pkg/endpoints/filterlatency"}
_NANO = 1_000_000_000


def encode(spans: Iterable[Span], resource: dict[str, str], clock: float) -> bytes:
    """Return an OTLP ExportTraceServiceRequest with these spans, encoded.

    Args:
        spans: the spans, which have ended.
        resource: the attributes of the process.
        clock: the seconds that are added to times of time.monotonic() to give seconds since the epoch.
    """
    scopes: dict[str, list[Message]] = {}
    for span in spans:
        scopes.setdefault(_SCOPES.get(span.scope, span.scope), []).append(_message(span, clock))
    scope_spans = [
        ScopeSpans(scope=InstrumentationScope(name=name), spans=messages) for name, messages in scopes.items()
    ]
    resource_spans = ResourceSpans(resource=Resource(attributes=_pairs(resource)), scope_spans=scope_spans)
    return ExportTraceServiceRequest(resource_spans=[resource_spans]).SerializeToString()


def _message(span: Span, clock: float) -> Message:
    message = Message(
        trace_id=span.trace.trace_id.to_bytes(16, "big"),
        span_id=span.span_id.to_bytes(8, "big"),
        parent_span_id=span.parent_id.to_bytes(8, "big") if span.parent_id else b"",
        name=span.name,
        kind=Message.SpanKind.ValueType(span.kind),
        start_time_unix_nano=int((span.started + clock) * _NANO),
        end_time_unix_nano=int((span.ended + clock) * _NANO),
        attributes=_pairs(span.attributes),
        events=[Message.Event(time_unix_nano=int((at + clock) * _NANO), name=name) for at, name in span.events],
        flags=1,
    )
    if span.kind == Message.SPAN_KIND_SERVER:
        message.links.extend(
            Message.Link(trace_id=trace.to_bytes(16, "big"), span_id=parent.to_bytes(8, "big"))
            for trace, parent in span.trace.links
        )
    if span.error:
        message.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=span.error))
    return message


def _pairs(attributes: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=str(value))
