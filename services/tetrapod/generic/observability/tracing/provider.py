"""`Tracing`: decides which requests are traced for the exporter; created if `--tracing-config-file` is given.

A request is traced if its caller traces it and is trusted (system:masters, system:monitoring, our own front proxy).
Other requests are sampled at the configured rate. Upstream: NewProvider of k8s.io/component-base/tracing (ParentBased,
TraceIDRatioBased), WithTracing of k8s.io/apiserver/pkg/endpoints/filters/traces.go (public endpoint).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from tetrapod.generic.http.request import Request
from tetrapod.generic.observability.tracing import peer_traces
from tetrapod.generic.observability.tracing.propagation import carried, extract
from tetrapod.generic.observability.tracing.spans import Span, Trace
from tetrapod.machinery.user import SYSTEM_MASTERS

if TYPE_CHECKING:
    from tetrapod.generic.observability.tracing.configuration import TracingConfiguration
    from tetrapod.generic.observability.tracing.exporter import Exporter

_PRIVILEGED: Final = frozenset({SYSTEM_MASTERS, "system:monitoring"})
_CANDIDATE: Final = "trace id by chance"
_bits: Final = random.Random().getrandbits


class Tracing:
    """The sampler."""

    def __init__(self, configuration: TracingConfiguration, exporter: Exporter) -> None:
        self._bound = int(configuration.sampling_rate_per_million / 1_000_000 * (1 << 63))
        self._exporter = exporter

    def concerns(self, request: Request) -> bool:
        """Return whether the request may have to be traced. The sampling decision is made here, once."""
        if self._bound:
            trace_id = _bits(128)
            if (trace_id & ((1 << 64) - 1)) >> 1 < self._bound:
                request.state[_CANDIDATE] = trace_id
                return True
        remote = extract(request.headers)
        return remote is not None and remote.sampled

    def decide(self, request: Request, trace: Trace) -> int:
        """Decide after authentication whether `trace` is exported, and under which id.

        Returns the parent's span id, or 0.
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
        """End the span and pass it with all spans below it to the exporter."""
        server.end()
        if not server.trace.detailed:
            server.trace.closed = True
        self._exporter.add(span for span in server.walk() if span.ended)
