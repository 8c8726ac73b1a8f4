"""Tests of W3C trace context: it is parsed strictly and passed on unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.observability.tracing.propagation import Remote, extract, inject
from tetrapod.generic.observability.tracing.spans import Span, Trace

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "00",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f" 00-{TRACE}-{SPAN}-01",
    ],
)
def test_malformed_trace_contexts_are_ignored(value: str) -> None:
    assert extract([(b"traceparent", value.encode())]) is None


def test_later_versions_may_say_more() -> None:
    assert extract([(b"traceparent", f"01-{TRACE}-{SPAN}-01-more".encode())]) == Remote(
        int(TRACE, 16), int(SPAN, 16), True
    )


@given(st.integers(1, 2**128 - 1), st.booleans())
def test_a_written_trace_context_is_read_back(trace_id: int, sampled: bool) -> None:
    trace = Trace(trace_id, sampled=sampled)
    trace.carried = [(b"tracestate", b"a=b")]
    span = Span(trace, "x")
    sent = inject([(b"traceparent", b"old"), (b"accept", b"*/*")], span)
    assert extract(sent) == Remote(trace_id, span.span_id, sampled)
    assert [name for name, _ in sent] == [b"accept", b"traceparent", b"tracestate"]
