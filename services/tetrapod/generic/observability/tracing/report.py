"""A trace as JSON and as text, for `?trace=1`.

In JSON a span contains its children. Times are in milliseconds, start times relative to the arrival of the request. The
text has one line for each span: start, duration, and duration without its children. Filters, each of which contains the
next one, are not indented.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tetrapod.generic.observability.tracing.spans import Span

FILTER: Final = "filter"
"""The scope of the spans of filters."""
SpanDocument = dict[str, Any]


def span_document(span: Span, zero: float) -> SpanDocument:
    """Return a span with its children as a JSON object. `zero` is when the request arrived (of time.monotonic())."""
    document: SpanDocument = {
        "name": span.name,
        "start": _ms(span.started - zero),
        "took": _ms((span.ended or span.started) - span.started),
    }
    if span.scope == FILTER:
        document["filter"] = True
    if span.attributes:
        document["attributes"] = span.attributes
    if span.error:
        document["error"] = span.error
    if span.events:
        document["events"] = [{"at": _ms(at - zero), "name": name} for at, name in span.events]
    children = [span_document(child, zero) for child in span.children]
    children += [_shift(graft, document["start"]) for graft in span.grafts]
    if children:
        document["spans"] = children
    return document


def _shift(graft: SpanDocument, by: float) -> SpanDocument:
    """Return a copy of another service's span, and of the spans below it, with all start times increased by `by` ms.

    The service reports times relative to the arrival of the request there. `by` is the start of our span of the call,
    so the copy has times relative to the start of our trace.
    """
    moved = {**graft, "start": round(graft["start"] + by, 3)}
    if "events" in graft:
        moved["events"] = [{**event, "at": round(event["at"] + by, 3)} for event in graft["events"]]
    if "spans" in graft:
        moved["spans"] = [_shift(child, by) for child in graft["spans"]]
    return moved


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def text(report: SpanDocument) -> str:
    """Return a report (the JSON of trace_endpoint.py) as text."""
    request, response = report["request"], report["response"]
    lines = [
        f"{request['method']} {request['uri']}",
        f"answered {response['status']} ({response['bytes']} bytes) after {report['took']:.3f} ms",
        f"audit ID {report['auditID']}, trace ID {report['traceID']}",
        "",
        f"{'start':>10} {'took':>10} {'own':>10}  step (ms)",
        *_lines(report["spans"], 0),
    ]
    if report.get("dropped"):
        lines.append(f"… and {report['dropped']} more steps")
    return "\n".join(lines) + "\n"


def _lines(spans: list[SpanDocument], depth: int) -> Iterator[str]:
    for span in spans:
        below = span.get("spans", ())
        own = max(span["took"] - _covered_time(below), 0.0)
        pairs = " ".join(
            f"{key}={value}"
            for key, value in span.get("attributes", {}).items()
            if value != "" and key not in _REQUEST_ATTRIBUTES
        )
        failed = f"  ! {span['error']}" if "error" in span else ""
        name = f"filter {span['name']}" if span.get("filter") else span["name"]
        yield (
            f"{span['start']:>10.3f} {span['took']:>10.3f} {own:>10.3f}  "
            f"{'  ' * depth}{name}{'  ' + pairs if pairs else ''}{failed}"
        )
        for event in span.get("events", ()):
            yield f"{event['at']:>10.3f} {'':>10} {'':>10}  {'  ' * (depth + 1)}· {event['name']}"
        if span.get("filter") and len(below) == 1 and below[0].get("filter"):
            yield from _lines(below, depth)
        else:
            yield from _lines(below, depth + 1)


def _covered_time(spans: Any) -> float:
    """Return the milliseconds that are covered by at least one of the spans, some of which overlap."""
    total, end = 0.0, float("-inf")
    for span in sorted(spans, key=lambda s: s["start"]):
        begins, ends = max(span["start"], end), span["start"] + span["took"]
        if ends > begins:
            total += ends - begins
            end = ends
    return total


_REQUEST_ATTRIBUTES: Final = frozenset(
    {
        "audit-id",
        "accept",
        "client",
        "protocol",
        "scope",
        "url",
        "user-agent",
        "verb",
        "api-group",
        "api-version",
        "resource",
        "namespace",
    }
)
"""Attributes that the report already shows for the request as a whole."""
