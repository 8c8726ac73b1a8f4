"""A minimal OpenTelemetry collector: receives OTLP over gRPC and stores the spans.

It uses grpcio, independent of Tetrapod's own gRPC.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.common.v1 import common_pb2 as common


class ReceivedSpan:
    def __init__(self, span: Any, resource: dict[str, Any], scope: str) -> None:
        self.name: str = span.name
        self.kind: int = span.kind
        self.trace_id: str = span.trace_id.hex()
        self.span_id: str = span.span_id.hex()
        self.parent: str = span.parent_span_id.hex()
        self.attributes = _plain(span.attributes)
        self.events = [(event.name, _plain(event.attributes)) for event in span.events]
        self.links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
        self.status = (span.status.code, span.status.message)
        self.started, self.ended = span.start_time_unix_nano, span.end_time_unix_nano
        self.resource = resource
        self.scope = scope

    def __repr__(self) -> str:
        return f"<{self.name} {self.trace_id[:6]}/{self.parent[:6] or '-'}>"


def _plain(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: common.AnyValue) -> Any:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [_value(v) for v in value.array_value.values]
    return getattr(value, which) if which else None


class Collector:
    """An OTLP collector, used as a context manager.

    Attributes:
        endpoint: its address.
        spans: all received spans.
    """

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self._arrived = threading.Condition()
        self._server = grpc.server(ThreadPoolExecutor(2))
        handler = grpc.unary_unary_rpc_method_handler(
            self._export,
            service.ExportTraceServiceRequest.FromString,
            service.ExportTraceServiceResponse.SerializeToString,
        )
        name = "opentelemetry.proto.collector.trace.v1.TraceService"
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"Export": handler}),))
        self.endpoint = f"localhost:{self._server.add_insecure_port('localhost:0')}"

    def _export(self, request: service.ExportTraceServiceRequest, context: Any) -> service.ExportTraceServiceResponse:
        with self._arrived:
            for by_resource in request.resource_spans:
                resource = _plain(by_resource.resource.attributes)
                for by_scope in by_resource.scope_spans:
                    self.spans += [ReceivedSpan(span, resource, by_scope.scope.name) for span in by_scope.spans]
            self._arrived.notify_all()
        return service.ExportTraceServiceResponse()

    def wait_for(self, enough: Callable[[list[ReceivedSpan]], bool], timeout: float = 30) -> list[ReceivedSpan]:
        with self._arrived:
            assert self._arrived.wait_for(lambda: enough(self.spans), timeout), self.spans
            return list(self.spans)

    def __enter__(self) -> Collector:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(None).wait()
