"""A trace as JSON and as text, for `?trace=1`.

In JSON a span contains its children. Times are in milliseconds, start times relative to the arrival of the request. The
text has one line for each span: start, duration, and duration without its children. Filters, each of which contains the
next one, are not indented.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
        *_lines(report["spans"]),
    ]
    if report.get("dropped"):
        lines.append(f"… and {report['dropped']} more steps")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Row:
    """A span as a row of a table.

    Attributes:
        depth: the number of steps that contain it. Filters do not count, because each contains the next one.
        name: the name of the span.
        start: the milliseconds from the arrival of the request to its start.
        took: its duration in milliseconds.
        own_parts: start and duration of each part of it in which none of the steps below it ran.
        attributes: its attributes, without those that the report shows for the request as a whole.
        error: the error with which it ended; "" for none.
        filter: whether it is a filter.
        events: its events, each with `at` in milliseconds and `name`.
    """

    depth: int
    name: str
    start: float
    took: float
    own_parts: list[tuple[float, float]]
    attributes: dict[str, Any]
    error: str
    filter: bool
    events: list[SpanDocument]

    @property
    def own(self) -> float:
        """The milliseconds in which none of the steps below it ran."""
        return sum(duration for _, duration in self.own_parts)


def rows(spans: list[SpanDocument], depth: int = 0) -> Iterator[Row]:
    """Yield the spans of a report, each before those below it, as rows that begin at `depth`."""
    for span in spans:
        below = span.get("spans", [])
        attributes = {
            key: value
            for key, value in span.get("attributes", {}).items()
            if value != "" and key not in _REQUEST_ATTRIBUTES
        }
        is_filter = bool(span.get("filter"))
        yield Row(
            depth,
            span["name"],
            span["start"],
            span["took"],
            _own_parts(span),
            attributes,
            span.get("error", ""),
            is_filter,
            span.get("events", []),
        )
        yield from rows(below, depth if is_filter and len(below) == 1 and below[0].get("filter") else depth + 1)


def _lines(spans: list[SpanDocument]) -> Iterator[str]:
    for row in rows(spans):
        pairs = " ".join(f"{key}={value}" for key, value in row.attributes.items())
        failed = f"  ! {row.error}" if row.error else ""
        name = f"filter {row.name}" if row.filter else row.name
        yield (
            f"{row.start:>10.3f} {row.took:>10.3f} {row.own:>10.3f}  "
            f"{'  ' * row.depth}{name}{'  ' + pairs if pairs else ''}{failed}"
        )
        for event in row.events:
            yield f"{event['at']:>10.3f} {'':>10} {'':>10}  {'  ' * (row.depth + 1)}· {event['name']}"


def _own_parts(span: SpanDocument) -> list[tuple[float, float]]:
    """Return start and duration of each part of a span that no span below it covers. Those may overlap."""
    parts: list[tuple[float, float]] = []
    at, end = span["start"], span["start"] + span["took"]
    for child in sorted(span.get("spans", ()), key=lambda below: below["start"]):
        if (begins := min(child["start"], end)) > at:
            parts.append((at, begins - at))
        at = max(at, child["start"] + child["took"])
    return [*parts, (at, end - at)] if end > at else parts


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
