"""Render docs/reference/benchmarks.md from the measurements."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence

from bench.measuring import Measured, Plan, Rate
from bench.notes import HTTP2, INTERPRETERS, NOTES
from bench.plots import CPU, FLOODS
from bench.works import QUANTITIES, TABLES, WORKS, Quantity, Work

_HEAD = """# Benchmarks

This page is for operators and developers who compare Tetrapod's costs with kube-apiserver's. \
`make bench` writes it ({when}, {cores} cores,
Python {python}). Do not edit it; its notes are in `tests/bench/notes.py`.

The machines are shared, and their speed changes by the hour. The figure that counts is therefore **CPU time of the \
server's processes in
multiples of `hello`**:

- `hello` is a raw ASGI response of 1 kB from stock uvicorn (httptools, uvloop) over TLS. \
It is measured before and after each work in the
  same minute (here {hello:.0f} µs).
- Each work has three rounds, and the table shows the median.
- etcd's CPU and memory are not counted.
- wrk generates the load, with one thread, 16 connections, TLS, and a static bearer token of a user in \
`system:masters`. A client of the
  benchmark opens the watches.
- *kube-apiserver* is the CPU time of v1.37.1 with etcd 3.6.8 on such a machine, in the same multiples. \
*of it* is Tetrapod's share of that.
- The goals are shares of kube-apiserver's CPU time.
"""

_BESIDE = """\
- *beside it* is the most reliable share, where it was measured. Both servers run in the same minutes, \
and each is loaded for a second in
  turn. The figure is the median ratio of their CPU time for a request over {pairs} pairs of seconds, \
with the range of the middle half.
"""

_PLOTS = f"""
![CPU time of Tetrapod, as a share of kube-apiserver's](../images/{CPU})

![99th percentile of one user's GETs during another's flood](../images/{FLOODS})

The plots show the tables below. A bar is the share *beside it*, with the range of the middle half, where it was \
measured, and *of it* otherwise.
"""

_QUANTITY_HEAD = ("| figure | measured | kube-apiserver | goal | met |", "| --- | --- | --- | --- | --- |")


def render(results: dict[str, Measured], plan: Plan) -> str:
    hellos = sorted(rate.hello for measured in results.values() for rate in measured.rates.values()) or [0.0]
    parts = [
        _HEAD.format(
            when=time.strftime("%Y-%m-%d"),
            cores=os.cpu_count(),
            python=platform.python_version(),
            hello=hellos[len(hellos) // 2] * 1e6,
        )
    ]
    real = results.get("real")
    if any(measured.beside for measured in results.values()):
        parts[0] += _BESIDE.format(pairs=plan.pairs)
    parts[0] += _PLOTS
    for key, measured in results.items():
        parts.append(f"\n## {measured.title}\n")
        if "*" in measured.missing:
            parts.append(f"Not measured{' to the end' if measured.rates else ''}: {_inline(measured.missing['*'])}\n")
        if not measured.rates and not measured.quantities:
            continue
        parts += _rates(key, measured, plan)
        for heading, quantities in TABLES.items():
            rows = _quantities(key, quantities, measured, real if real is not measured else None, plan)
            parts += [f"### {heading}\n", *_QUANTITY_HEAD, *rows, ""] if rows else []
        parts += _notes(key, measured)
    return "\n".join([*parts, HTTP2, INTERPRETERS.lstrip("\n")])


def _rates(key: str, measured: Measured, plan: Plan) -> list[str]:
    head = ["work", "a second", "p50 ms", "p99 ms", "CPU µs", "× hello", "kube-apiserver", "of it"]
    head += [*(["beside it"] if measured.beside else []), "goal", "met"]
    lines = [_row(head), _row(["---"] * len(head))]
    for work in WORKS:
        if not plan.wants(work.key):
            continue
        rate = measured.rates.get(work.key)
        if rate is None:
            reason = measured.missing.get(work.key, measured.missing.get("*", ""))
            lines.append(_row([work.title, f"not measured: {_inline(reason)}", *[""] * (len(head) - 2)]))
            continue
        theirs = [_number(work.real), f"{rate.multiple / work.real:.2f}"] if work.real else ["", ""]
        cells = [work.title, *_cells(rate), *theirs]
        if measured.beside:
            share = measured.beside.get(work.key)
            cells.append(f"{share.median:.2f} ({share.low:.2f} to {share.high:.2f})" if share else "")
        lines.append(_row([*cells, *_goal(key, work, measured)]))
    return [*lines, ""]


def _cells(rate: Rate) -> list[str]:
    failed = f" ({rate.failed} failed)" if rate.failed else ""
    return [
        _number(rate.per_second) + failed,
        f"{rate.p50_ms:.2f}" if rate.p50_ms else "none ended",  # a round in which no request completed
        f"{rate.p99_ms:.2f}" if rate.p99_ms else "none ended",
        _number(rate.cpu * 1e6),
        _number(rate.multiple),
    ]


def _goal(key: str, work: Work, measured: Measured) -> list[str]:
    goal, share = work.goals.get(key, 0), _share(work, measured)
    if not goal or share is None:
        return ["", ""]
    return [f"≤ {goal:.2f}", "yes" if share <= goal else "**no**"]


def _share(work: Work, measured: Measured) -> float | None:
    """Return the share of kube-apiserver's CPU time, to two digits: the one beside it if it was measured."""
    if (beside := measured.beside.get(work.key)) is not None:
        return round(beside.median, 2)
    rate = measured.rates.get(work.key)
    return round(rate.multiple / work.real, 2) if rate is not None and work.real else None


def _quantities(
    key: str, quantities: Sequence[Quantity], measured: Measured, real: Measured | None, plan: Plan
) -> list[str]:
    lines = []
    for quantity in quantities:
        value = measured.quantities.get(quantity.key)
        if not plan.wants(quantity.key):
            continue
        if value is None:
            if (reason := measured.missing.get(quantity.key)) is not None:
                lines.append(_row([quantity.title, f"not measured: {_inline(reason)}", "", "", ""]))
            continue
        goal = quantity.goals.get(key, 0)
        theirs = real.quantities.get(quantity.key, 0) if real else quantity.real
        lines.append(
            _row(
                [
                    quantity.title,
                    f"{_number(value)} {quantity.unit}",
                    f"{_number(theirs)} {quantity.unit}" if theirs else "",
                    f"≤ {goal:g} {quantity.unit}" if goal else "",
                    ("yes" if value <= goal else "**no**") if goal else "",
                ]
            )
        )
    return lines


def missed(key: str, measured: Measured) -> list[str]:
    """Return the keys of works and quantities above their goals."""
    works = [w.key for w in WORKS if key in w.goals and (_share(w, measured) or 0) > w.goals[key]]
    return works + [q.key for q in QUANTITIES if key in q.goals and measured.quantities.get(q.key, 0) > q.goals[key]]


def _notes(key: str, measured: Measured) -> list[str]:
    titles: dict[str, list[str]] = {}  # by note, because several works may share one
    for name in missed(key, measured):
        title = next(x.title for x in (*WORKS, *QUANTITIES) if x.key == name)
        titles.setdefault(NOTES.get((key, name), "Above the goal; not explained yet."), []).append(title)
    lines = [f"- {' '.join(f'**{title}.**' for title in group)} {note}" for note, group in titles.items()]
    return ["### Figures above their goals\n", *lines, ""] if lines else []


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _inline(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
