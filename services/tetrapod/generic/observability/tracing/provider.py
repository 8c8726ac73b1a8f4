"""`Tracing`: decides which requests are traced for the exporter. It exists if `--tracing-config-file` is given.

A request is traced if its caller traces it and is trusted (system:masters, system:monitoring, our own front proxy).
Other requests are sampled at the configured rate.
Upstream: k8s.io/component-base/tracing, NewProvider (ParentBased, TraceIDRatioBased);
k8s.io/apiserver/pkg/endpoints/filters/traces.go, WithTracing (public endpoint)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tetrapod.generic.http.request import Request
from tetrapod.generic.observability.tracing import peer_traces
from tetrapod.generic.observability.tracing.propagation import carried, extract
from tetrapod.generic.observability.tracing.spans import Span, Trace
from tetrapod.machinery.random_bits import random_bits
from tetrapod.machinery.user import SYSTEM_MASTERS

if TYPE_CHECKING:
    from tetrapod.generic.observability.tracing.configuration import TracingConfiguration
    from tetrapod.generic.observability.tracing.exporter import Exporter

_PRIVILEGED: Final = frozenset({SYSTEM_MASTERS, "system:monitoring"})
_CANDIDATE: Final = "trace id by chance"


class Tracing:
    """The sampler, which decides which requests are exported as traces, and passes their spans to the exporter.

    Args:
        configuration: has the rate at which requests are sampled.
        exporter: sends the spans to the collector.
    """

    def __init__(self, configuration: TracingConfiguration, exporter: Exporter) -> None:
        self._bound = int(configuration.sampling_rate_per_million / 1_000_000 * (1 << 63))
        self._exporter = exporter

    def concerns(self, request: Request) -> bool:
        """Return whether a new request may be exported: it is sampled, or its `traceparent` has the sampled flag.

        Call it once for each request, because it makes the random decision. The decision is stored in the request, and
        `decide` uses it after authentication.
        """
        if self._bound:
            trace_id = random_bits(128)
            if (trace_id & ((1 << 64) - 1)) >> 1 < self._bound:
                request.state[_CANDIDATE] = trace_id
                return True
        remote = extract(request.headers)
        return remote is not None and remote.sampled

    def decide(self, request: Request, trace: Trace) -> int:
        """Decide after authentication whether a request is exported, and set id, `sampled` and links of its trace.

        Returns:
            The id of the caller's span, which becomes the parent; 0 for a trace that begins here.
        """
        sampled_id = request.state.get(_CANDIDATE, 0)
        trace.carried = carried(request.headers)
        remote = extract(request.headers)
        if remote is not None and (peer_traces.is_trusted(request) or not _PRIVILEGED.isdisjoint(request.user.groups)):
            trace.trace_id, trace.sampled = remote.trace_id, remote.sampled
            return remote.span_id
        if remote is not None:
            trace.links.append((remote.trace_id, remote.span_id))
        if sampled_id:
            trace.trace_id, trace.sampled = sampled_id, True
        return 0

    def finished(self, server: Span) -> None:
        """End the server span of a request, and pass it with all ended spans below it to the exporter.

        The trace is closed, unless it is also returned to the client (`Trace.detailed`).
        """
        server.end()
        if not server.trace.detailed:
            server.trace.closed = True
        self._exporter.add(span for span in server.walk() if span.ended)
