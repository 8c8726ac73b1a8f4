"""A trace as JSON and as text.

In JSON a span has its children inside; times are milliseconds, those of beginnings since the request came. As text there is a line a
step: when it began, how long it took, how long without what is below it. Filters, each of which has the next one inside, stand one below
the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tetrapod.generic.tracing.spans import Span

FILTER: Final = "filter"
"""The scope of the spans of filters."""
Told = dict[str, Any]


def told(span: Span, zero: float) -> Told:
    """A span as JSON; `zero` is when the request came."""
    found: Told = {"name": span.name, "start": _ms(span.started - zero), "took": _ms((span.ended or span.started) - span.started)}
    if span.scope == FILTER:
        found["filter"] = True
    if span.attributes:
        found["attributes"] = span.attributes
    if span.error:
        found["error"] = span.error
    if span.events:
        found["events"] = [{"at": _ms(at - zero), "name": name} for at, name in span.events]
    children = [told(child, zero) for child in span.children]
    children += [_moved(graft, found["start"]) for graft in span.grafts]
    if children:
        found["spans"] = children
    return found


def _moved(graft: Told, by: float) -> Told:
    """A span of another service: its clock began when the request came there, which is when our step began."""
    moved = {**graft, "start": round(graft["start"] + by, 3)}
    if "events" in graft:
        moved["events"] = [{**event, "at": round(event["at"] + by, 3)} for event in graft["events"]]
    if "spans" in graft:
        moved["spans"] = [_moved(child, by) for child in graft["spans"]]
    return moved


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def text(report: Told) -> str:
    """The whole report, for people."""
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


def _lines(spans: list[Told], depth: int) -> Iterator[str]:
    for span in spans:
        below = span.get("spans", ())
        own = max(span["took"] - _covered(below), 0.0)
        said = " ".join(f"{key}={value}" for key, value in span.get("attributes", {}).items() if value != "" and key not in _SAID_ABOVE)
        failed = f"  ! {span['error']}" if "error" in span else ""
        name = f"filter {span['name']}" if span.get("filter") else span["name"]
        yield f"{span['start']:>10.3f} {span['took']:>10.3f} {own:>10.3f}  {'  ' * depth}{name}{'  ' + said if said else ''}{failed}"
        for event in span.get("events", ()):
            yield f"{event['at']:>10.3f} {'':>10} {'':>10}  {'  ' * (depth + 1)}· {event['name']}"
        if span.get("filter") and len(below) == 1 and below[0].get("filter"):
            yield from _lines(below, depth)
        else:
            yield from _lines(below, depth + 1)


def _covered(spans: Any) -> float:
    """How much time the spans take up together; some run side by side."""
    total, end = 0.0, float("-inf")
    for span in sorted(spans, key=lambda s: s["start"]):
        begins, ends = max(span["start"], end), span["start"] + span["took"]
        if ends > begins:
            total += ends - begins
            end = ends
    return total


_SAID_ABOVE: Final = frozenset(
    {"audit-id", "accept", "client", "protocol", "scope", "url", "user-agent", "verb", "api-group", "api-version", "resource", "namespace"}
)
"""What every report says of the request as a whole."""
