"""The trace of one request as one HTML page: no script, no other file, and every text of the trace escaped.

A Content-Security-Policy in the page allows its own style sheet and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any, Final

from tetrapod.console.steps import KIND_TITLES, StepKind, kind_of, purpose_of
from tetrapod.generic.observability.tracing.report import Row, rows

_WIDTH: Final = 1000
"""The width of the time axis, in units of the drawings."""
_NARROWEST: Final = 2
"""The narrowest bar, in the same units, so that short steps remain visible."""
_DEEPEST: Final = 24
"""Steps below this depth are not indented further (static/waterfall.css has a rule for each depth)."""


def style_sheet() -> str:
    """Return the style sheet of the page."""
    folder = files("tetrapod.console") / "static"
    return "".join((folder / name).read_text("utf-8") for name in ("base.css", "waterfall.css"))


def content_security_policy(style: str) -> str:
    """Return the policy of a page whose only content beside HTML is the inline style sheet `style`."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def page(report: dict[str, Any]) -> str:
    """Return the page of a trace.

    Args:
        report: the JSON of `?trace=1` (generic/observability/tracing/trace_endpoint.py).
    """
    request, response = report["request"], report["response"]
    steps = list(rows(report["spans"]))
    facts = [
        ("Status", response["status"]),
        ("Time", f"{report['took']:.3f} ms"),
        ("Response", f"{response['bytes']:,} bytes"),
        ("User", request.get("user", "")),
        ("Server", report.get("server", "")),
        ("Begun", report.get("time", "")),
        ("Audit ID", report["auditID"]),
        ("Trace ID", report["traceID"]),
    ]
    dropped = f"<p>{report['dropped']:d} more steps are not shown.</p>" if report.get("dropped") else ""
    return document(
        f"{request['method']} {request['uri']}",
        f"<dl class=facts>{''.join(_fact(name, value) for name, value in facts if value != '')}</dl>"
        f"{_sums(steps)}{_table(steps, max(float(report['took']), 0.001))}{dropped}",
    )


def document(title: str, body: str) -> str:
    """Return a page with the style sheet and the policy.

    Args:
        title: its title, as text.
        body: the HTML below the title.
    """
    style = style_sheet()
    return (
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        f'<meta http-equiv=Content-Security-Policy content="{content_security_policy(style)}">\n'
        "<meta name=viewport content='width=device-width, initial-scale=1'>\n"
        "<meta name=color-scheme content='light dark'>\n"
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body class=trace>\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _fact(name: str, value: object) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>"


def _sums(steps: list[Row]) -> str:
    """Return the time of each kind of steps, which is also the legend of the colors."""
    sums: dict[StepKind, float] = defaultdict(float)
    for row in steps:
        sums[kind_of(row)] += row.own
    total = sum(sums.values()) or 1.0
    lines = [
        f'<tr><th scope=row><span class="key k-{kind}"></span>{KIND_TITLES[kind]}</th>'
        f"<td class=n>{sums[kind]:.3f}</td><td class=n>{sums[kind] / total:.0%}</td>"
        f"<td class=share>{_svg(_bar(kind, 0.0, sums[kind] / total))}</td></tr>"
        for kind in StepKind
        if kind in sums
    ]
    return (
        "<h2>Where the time went</h2>\n<table class=sums><thead><tr><th scope=col>Kind of step</th>"
        "<th scope=col class=n>ms</th><th scope=col class=n>share</th><th scope=col aria-hidden=true></th></tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>\n"
    )


def _table(steps: list[Row], total: float) -> str:
    ticks = "".join(f"<span>{total * part / 4:.3g}</span>" for part in range(5))
    lines = "\n".join(_line(row, total) for row in steps)
    return (
        "<h2>Steps</h2>\n<p>Times are in milliseconds. A step contains the steps that are indented below it. "
        "Each filter contains everything below it. <em>Own</em> is the time in which none of them ran, "
        "and is drawn in full color.</p>\n"
        "<table class=steps><thead><tr><th scope=col>Step</th>"
        f"<th scope=col class=axis><span class=label>Time</span><span class=ticks aria-hidden=true>{ticks}</span></th>"
        "<th scope=col class=n>Start</th><th scope=col class=n>Took</th><th scope=col class=n>Own</th></tr></thead>\n"
        f"<tbody>\n{lines}\n</tbody></table>\n"
    )


def _line(row: Row, total: float) -> str:
    kind = kind_of(row)
    failed = f"<p class=error>{escape(row.error)}</p>" if row.error else ""
    return (
        f'<tr class="k-{kind}"><th scope=row class="d{min(row.depth, _DEEPEST)}">{_name(row)}{failed}</th>'
        f"<td class=axis>{_drawing(row, total)}</td>"
        f"<td class=n>{row.start:.3f}</td><td class=n>{row.took:.3f}</td><td class=n>{row.own:.3f}</td></tr>"
    )


def _name(row: Row) -> str:
    """Return the name of a step. Its details are folded, if it has any."""
    name = f"{'<small>filter</small> ' if row.filter else ''}{escape(row.name)}"
    details = "".join(_details(row))
    return f"<details><summary>{name}</summary>{details}</details>" if details else f"<span class=name>{name}</span>"


def _details(row: Row) -> Iterator[str]:
    if purpose := purpose_of(row):
        yield f"<p>{escape(purpose)}</p>"
    if row.attributes:
        yield f"<dl>{''.join(_fact(str(key), value) for key, value in row.attributes.items())}</dl>"
    if row.events:
        events = "".join(
            f"<li><span class=n>{event['at']:.3f}</span> {escape(event['name'])}</li>" for event in row.events
        )
        yield f"<ul>{events}</ul>"


def _drawing(row: Row, total: float) -> str:
    """Return a step on the time axis: all of it pale, and the parts in which none of the steps below it ran on top."""
    kind = kind_of(row)
    own = "".join(_bar(kind, start / total, took / total, narrowest=0.0) for start, took in row.own_parts)
    return _svg(f"<g opacity=.3>{_bar(kind, row.start / total, row.took / total)}</g>{own}")


def _svg(content: str) -> str:
    return f"<svg class=bar viewBox='0 0 {_WIDTH} 10' preserveAspectRatio=none aria-hidden=true>{content}</svg>"


def _bar(kind: StepKind, start: float, length: float, narrowest: float = _NARROWEST) -> str:
    """Return a rectangle. `start` and `length` are shares of the width."""
    width = min(max(length * _WIDTH, narrowest), _WIDTH)
    left = min(max(start * _WIDTH, 0.0), _WIDTH - width)
    return f'<rect class="k-{kind}" x={left:.1f} width={width:.1f} height=10 />'
